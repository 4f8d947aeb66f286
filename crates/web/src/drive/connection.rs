//! A connection that says when bytes left and came.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HeaderValue, LAST_MODIFIED};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::timer::Timer;

/// One connection, kept from request to request.
pub(super) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    stamps: Rc<Stamps>,
}

/// A response that came to its end.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) last_modified: Option<HeaderValue>,
    pub(super) sent_ns: u64,
    pub(super) heard_ns: u64,
    pub(super) ended_ns: u64,
}

/// No whole response.
pub(super) enum Failure {
    /// No connection was made.
    Connect(io::Error),
    /// The connection broke, or what came was no HTTP.
    Broken(hyper::Error),
    /// There was no end to it.
    TooLong,
}

impl Connection {
    pub(super) async fn make(address: SocketAddr, timer: &Rc<Timer>) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await.map_err(Failure::Connect)?;
        stream.set_nodelay(true).map_err(Failure::Connect)?;
        let stamps =
            Rc::new(Stamps { timer: timer.clone(), sent: Cell::new(None), heard: Cell::new(None) });
        let wire = Wire { stream, stamps: stamps.clone() };
        let (sender, connection) = handshake(TokioIo::new(wire)).await.map_err(Failure::Broken)?;
        spawn_local(async move {
            // Whoever waits for a response hears of the error too.
            let _ = connection.await;
        });
        Ok(Self { sender, stamps })
    }

    /// True where another request may be sent: the server has not closed it, as far as is known.
    pub(super) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    /// True where anything came since the last request.
    pub(super) fn has_heard(&self) -> bool {
        self.stamps.heard.get().is_some()
    }

    /// Sends a request and takes all of the response. `bytes` counts those of the body, of a broken
    /// one too.
    pub(super) async fn exchange(
        &mut self,
        request: Request<Empty<Bytes>>,
        bytes: &Cell<u64>,
    ) -> Result<Reply, hyper::Error> {
        self.stamps.sent.set(None);
        self.stamps.heard.set(None);
        let response = self.sender.send_request(request).await?;
        let status = response.status().as_u16();
        let last_modified = response.headers().get(LAST_MODIFIED).cloned();
        take_body(response, bytes).await?;
        let ended_ns = self.stamps.timer.now_ns();
        let sent_ns = self.stamps.sent.get().unwrap_or(ended_ns);
        let heard_ns = self.stamps.heard.get().unwrap_or(ended_ns);
        Ok(Reply { status, bytes: bytes.get(), last_modified, sent_ns, heard_ns, ended_ns })
    }
}

async fn take_body(
    mut response: Response<Incoming>,
    bytes: &Cell<u64>,
) -> Result<(), hyper::Error> {
    while let Some(frame) = response.body_mut().frame().await {
        bytes.set(bytes.get() + frame?.data_ref().map_or(0, |data| data.len() as u64));
    }
    Ok(())
}

/// When the first byte of a request left, and the first of its response came.
struct Stamps {
    timer: Rc<Timer>,
    sent: Cell<Option<u64>>,
    heard: Cell<Option<u64>>,
}

impl Stamps {
    fn stamp(&self, cell: &Cell<Option<u64>>) {
        if cell.get().is_none() {
            cell.set(Some(self.timer.now_ns()));
        }
    }
}

/// A socket with stamps.
struct Wire {
    stream: TcpStream,
    stamps: Rc<Stamps>,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.stamps.stamp(&self.stamps.heard);
        }
        result
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stamps.stamp(&self.stamps.sent);
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stamps.stamp(&self.stamps.sent);
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
