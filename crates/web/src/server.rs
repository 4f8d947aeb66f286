//! The address that load is made at.

use std::fmt;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use hyper::Uri;

use crate::error::Error;

/// A server that takes longer to accept a connection is not there.
const PATIENCE: Duration = Duration::from_secs(10);

/// The one address that is ever connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    url: String,
    authority: String,
    address: SocketAddr,
    prefix: String,
}

impl Server {
    /// Reads `http://host[:port][/prefix/]` and resolves the name, once. Where a name has addresses
    /// of both kinds, the first of IPv4 is taken: a server that listens at one kind mostly listens
    /// at that.
    ///
    /// # Errors
    /// One line that names the text and what to try.
    pub fn parse(url: &str) -> Result<Self, String> {
        let url = url.trim();
        let wrong = || format!("`{url}` is no address of a server; write http://host:port/prefix/");
        if url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            return Err(format!(
                "`{url}`: TLS is not spoken here: name the address of the server behind it, \
                 http://..."
            ));
        }
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(wrong());
        };
        if url.contains(['?', '#']) || authority.as_str().contains('@') {
            return Err(format!("{}, without user, query and fragment", wrong()));
        }
        let host = authority.host();
        let has_port = authority.as_str() != host;
        let port = authority.port_u16().or((!has_port).then_some(80)).ok_or_else(wrong)?;
        let address = resolve(host.trim_matches(['[', ']']), port)?;
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { url: url.to_owned(), authority: authority.as_str().to_owned(), address, prefix })
    }

    /// Looks whether anybody answers, so that nothing is prepared in vain: connects, and asks nothing.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    pub fn answers(&self) -> Result<(), Error> {
        let unreachable = |source| Error::Unreachable { url: self.url.clone(), source };
        TcpStream::connect_timeout(&self.address, PATIENCE).map(drop).map_err(unreachable)
    }

    /// Address that the name was resolved to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Host, and port where one was given: the value of the header `Host`.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Path that stands before each path that is asked for, without a slash at its end.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let unknown = |reason: &str| {
        format!("the host `{host}` is not known ({reason}); check the name, or give its address")
    };
    let addresses: Vec<_> =
        (host, port).to_socket_addrs().map_err(|error| unknown(&error.to_string()))?.collect();
    let first = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    first.copied().ok_or_else(|| unknown("it has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, address: &str, authority: &str, prefix: &str) {
        let server = Server::parse(url).unwrap();
        let found = (server.address(), server.authority(), server.prefix());
        assert_eq!(found, (address.parse().unwrap(), authority, prefix));
        assert_eq!(server.to_string(), url);
    }

    #[test]
    fn an_address_has_a_host_a_port_and_a_prefix() {
        check("http://127.0.0.1", "127.0.0.1:80", "127.0.0.1", "");
        check("http://127.0.0.1/", "127.0.0.1:80", "127.0.0.1", "");
        check("http://127.0.0.1:81/a/b/", "127.0.0.1:81", "127.0.0.1:81", "/a/b");
        check("http://[::1]:82/a", "[::1]:82", "[::1]:82", "/a");
        check("HTTP://127.0.0.1:83", "127.0.0.1:83", "127.0.0.1:83", "");
    }

    #[test]
    fn a_name_is_resolved() {
        let server = Server::parse("http://localhost:8080").unwrap();
        assert!(server.address().ip().is_loopback());
        assert_eq!(server.authority(), "localhost:8080");
        // Names below `invalid` never exist (RFC 6761).
        let error = Server::parse("http://nobody.invalid/").unwrap_err();
        assert!(error.contains("`nobody.invalid` is not known"), "{error}");
    }

    #[test]
    fn tls_is_refused_with_what_to_try() {
        for url in ["https://127.0.0.1/", "HTTPS://127.0.0.1"] {
            let error = Server::parse(url).unwrap_err();
            assert!(error.contains("TLS is not spoken here"), "{error}");
            assert!(error.contains("the server behind it, http://"), "{error}");
            assert_eq!(error.lines().count(), 1);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let texts = [
            "",
            "127.0.0.1",
            "ftp://127.0.0.1/",
            "http://",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:/",
            "http://a@127.0.0.1/",
            "http://127.0.0.1/?a",
            "http://127.0.0.1/#a",
            "/a",
            "http://127.0.0.1/a b",
        ];
        for text in texts {
            let error = Server::parse(text).unwrap_err();
            assert!(error.contains("write http://host:port/prefix/"), "{text}: {error}");
        }
    }
}
