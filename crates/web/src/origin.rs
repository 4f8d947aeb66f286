//! A server whose response times are given: the servers behind a proxy under test.

mod page;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, mpsc};
use std::thread;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ioscape_engine::Stopwatch;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{LocalSet, spawn_local};

use crate::error::Error;
use crate::response_times::ResponseTimes;
use crate::runtime::{halted, oversee, runtimes};
use crate::timer::Timer;

use page::{Filler, Pages};

/// Connections that the kernel holds until they are taken.
const BACKLOG: i32 = 4096;
/// Wait before the next try where a connection could not be taken, nanoseconds.
const RETRY_NS: u64 = 10_000_000;

/// A server that is to run.
pub struct Origin<'a> {
    /// Address; port 0 takes any that is free.
    pub listen: SocketAddr,
    /// Files with their bytes. A request's path finds a file by its last two components, so that any
    /// prefix works: `/x/f1/f17` finds `f1/f17`.
    pub paths: HashMap<String, u64>,
    /// Times that responses are kept back.
    pub response_times: ResponseTimes,
    /// Chance of the response times, and of the bytes.
    pub seed: u64,
    /// Ends the server where it becomes true.
    pub interrupt: &'a AtomicBool,
    /// Called once, with the address that is listened at.
    pub on_listen: &'a mut dyn FnMut(SocketAddr),
    /// The time.
    pub watch: Stopwatch,
    /// Event loops, each a thread; at least one is made.
    pub threads: usize,
}

impl fmt::Debug for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin")
            .field("listen", &self.listen)
            .field("paths", &self.paths.len())
            .field("response_times", &self.response_times)
            .finish_non_exhaustive()
    }
}

/// Counts of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that were answered, or were about to be.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Responses, by status.
    pub by_status: BTreeMap<u16, u64>,
    /// Connections that were taken.
    pub connections: u64,
}

impl Served {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.connections += other.connections;
        for (status, count) in &other.by_status {
            *self.by_status.entry(*status).or_default() += count;
        }
    }
}

/// Answers until it is interrupted.
///
/// A known file is sent with `ETag` and a `Last-Modified` that is the same for all; a request that
/// names one of them gets 304, another path 404, a method other than GET and HEAD 405.
///
/// # Errors
/// [`Error`] where the address cannot be listened at, or a thread lacks descriptors.
pub fn serve(origin: Origin<'_>) -> Result<Served, Error> {
    let failed = |source| Error::Listen { address: origin.listen, source };
    let listener = TcpListener::bind(origin.listen).map_err(failed)?;
    rustix::net::listen(&listener, BACKLOG).map_err(|errno| failed(errno.into()))?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let runtimes = runtimes(origin.threads)?;
    let listeners = runtimes.iter().map(|_| listener.try_clone()).collect::<io::Result<Vec<_>>>();
    let listeners = listeners.map_err(failed)?;
    let pages = Arc::new(Pages::new(origin.paths, origin.seed));
    let (halt, watch, seed) = (Arc::new(AtomicBool::new(false)), origin.watch, origin.seed);
    (origin.on_listen)(address);
    thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        let start = |(number, (runtime, listener)): (u64, (Runtime, TcpListener))| {
            let (pages, halt, running) = (pages.clone(), halt.clone(), running.clone());
            let times = origin.response_times.clone();
            let chance = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(number));
            scope.spawn(move || {
                let _running = running;
                LocalSet::new().block_on(&runtime, async {
                    let (chance, served) = (RefCell::new(chance), Rc::default());
                    let timer = Timer::start(watch)?;
                    run(Desk { pages, times, timer, chance, served }, listener, halt).await
                })
            })
        };
        let threads: Vec<_> = (0..).zip(runtimes.into_iter().zip(listeners)).map(start).collect();
        drop(running);
        oversee(&ended, origin.interrupt, &halt, || {});
        let mut all = Served::default();
        for thread in threads {
            let served = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.add(&served.map_err(|source| Error::EventLoop { source })?);
        }
        Ok(all)
    })
}

/// Everything that the connections of one loop share.
struct Desk {
    pages: Arc<Pages>,
    times: ResponseTimes,
    timer: Rc<Timer>,
    chance: RefCell<Xoshiro256PlusPlus>,
    served: Rc<RefCell<Served>>,
}

/// One loop. What is still open when it is halted is cut.
async fn run(desk: Desk, listener: TcpListener, halt: Arc<AtomicBool>) -> io::Result<Served> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let desk = Rc::new(desk);
    spawn_local(take_connections(desk.clone(), listener));
    halted(desk.timer.clone(), halt).await;
    Ok(desk.served.take())
}

async fn take_connections(desk: Rc<Desk>, listener: tokio::net::TcpListener) {
    while !desk.timer.is_halted() {
        match listener.accept().await {
            Ok((stream, _)) => {
                desk.served.borrow_mut().connections += 1;
                spawn_local(converse(desk.clone(), stream));
            }
            // No descriptor is free, or the other side went away.
            Err(_) => desk.timer.sleep_until(desk.timer.now_ns() + RETRY_NS).await,
        }
    }
}

async fn converse(desk: Rc<Desk>, stream: TcpStream) {
    // Without it responses come late, but they come.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let desk = desk.clone();
        async move { Ok::<_, Infallible>(answer(&desk, request).await) }
    });
    let mut protocol = http1::Builder::new();
    protocol.header_read_timeout(None);
    // A connection that breaks is the client's affair.
    let _ = protocol.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(desk: &Desk, request: Request<Incoming>) -> Response<Filler> {
    let wait_ns = desk.times.draw_ns(&mut *desk.chance.borrow_mut());
    if wait_ns > 0 {
        desk.timer.sleep_until(desk.timer.now_ns() + wait_ns).await;
    }
    let response = desk.pages.answer(&request, &desk.served);
    let mut served = desk.served.borrow_mut();
    served.requests += 1;
    *served.by_status.entry(response.status().as_u16()).or_default() += 1;
    drop(served);
    desk.timer.wake_due();
    response
}
