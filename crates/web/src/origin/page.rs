//! Files that are made up: a length, a date, and bytes of chance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED,
};
use hyper::{Method, Request, Response, StatusCode};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Served;

/// Bytes that all bodies are made of, again and again.
const FILL: usize = 64 << 10;
/// When all files changed.
const DATE: HeaderValue = HeaderValue::from_static("Sat, 01 Jan 2000 00:00:00 GMT");

/// All files.
pub(super) struct Pages {
    pages: HashMap<String, Page>,
    fill: Bytes,
}

struct Page {
    bytes: u64,
    length: HeaderValue,
    tag: HeaderValue,
}

impl Pages {
    pub(super) fn new(paths: HashMap<String, u64>, seed: u64) -> Self {
        let page = |(path, bytes): (String, u64)| {
            let tag = HeaderValue::from_str(&format!("\"{bytes:x}\""))
                .expect("a number in quotes is a header's value");
            (key(&path).to_owned(), Page { bytes, length: bytes.into(), tag })
        };
        let mut fill = vec![0; FILL];
        Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut fill);
        Self { pages: paths.into_iter().map(page).collect(), fill: fill.into() }
    }

    /// The response. Bytes of its body are counted as they are taken.
    pub(super) fn answer<B>(
        &self,
        request: &Request<B>,
        served: &Rc<RefCell<Served>>,
    ) -> Response<Filler> {
        let body = |left| Filler { left, fill: self.fill.clone(), served: served.clone() };
        let without = |status, name: HeaderName, value| {
            let mut response = Response::new(body(0));
            *response.status_mut() = status;
            response.headers_mut().insert(name, value);
            response
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let allowed = HeaderValue::from_static("GET, HEAD");
            return without(StatusCode::METHOD_NOT_ALLOWED, ALLOW, allowed);
        }
        let Some(page) = self.pages.get(key(request.uri().path())) else {
            return without(StatusCode::NOT_FOUND, CONTENT_LENGTH, HeaderValue::from_static("0"));
        };
        let mut response = if page.is_had(request) {
            without(StatusCode::NOT_MODIFIED, LAST_MODIFIED, DATE)
        } else {
            let left = if *request.method() == Method::HEAD { 0 } else { page.bytes };
            let mut response = Response::new(body(left));
            let octets = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, octets);
            response.headers_mut().insert(CONTENT_LENGTH, page.length.clone());
            response.headers_mut().insert(LAST_MODIFIED, DATE);
            response
        };
        response.headers_mut().insert(ETAG, page.tag.clone());
        response
    }
}

impl Page {
    /// True where the visitor has the file as it is. As in RFC 9110 (section 13.2.2) a tag goes
    /// before a date. Simplified: one tag, and the very date, not a later one.
    fn is_had<B>(&self, request: &Request<B>) -> bool {
        match request.headers().get(IF_NONE_MATCH) {
            Some(tag) => *tag == self.tag,
            None => request.headers().get(IF_MODIFIED_SINCE) == Some(&DATE),
        }
    }
}

/// The last two components of a path.
fn key(path: &str) -> &str {
    let path = path.trim_start_matches('/');
    path.rmatch_indices('/').nth(1).map_or(path, |(at, _)| &path[at + 1..])
}

/// A body of some length.
pub(super) struct Filler {
    left: u64,
    fill: Bytes,
    served: Rc<RefCell<Served>>,
}

impl Body for Filler {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.left.min(self.fill.len() as u64);
        if length == 0 {
            return Poll::Ready(None);
        }
        self.left -= length;
        self.served.borrow_mut().bytes += length;
        Poll::Ready(Some(Ok(Frame::data(self.fill.slice(..length as usize)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_end_of_its_path() {
        for (path, expected) in [
            ("/x/f1/f17", "f1/f17"),
            ("f1/f17", "f1/f17"),
            ("/f1/f17", "f1/f17"),
            ("/a/b/c/d", "c/d"),
            ("/f17", "f17"),
            ("/", ""),
        ] {
            assert_eq!(key(path), expected, "{path}");
        }
    }
}
