//! One session: its requests over its own connection, each at its time.

use std::cell::{Cell, RefCell};
use std::error::Error as _;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{ACCEPT, HOST, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, USER_AGENT};
use hyper::{Request, StatusCode};
use ioscape_model::Spacing;
use ioscape_trace::site::{Answer, Ask, Session};
use tokio::time::timeout;

use super::connection::{Connection, Failure, Reply};
use super::plan::{Plan, Shared};
use crate::error::Error;
use crate::timer::Timer;
use crate::traffic::Traffic;

/// So long after the end of a load requests begin that were due before: a server that stalled over the end
/// is asked afterwards, so that its answers are counted.
const LATE_MAX_NS: u64 = 10_000_000_000;
/// Longest wait for a whole response.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Everything that the tasks of one loop share.
pub(super) struct Desk {
    pub(super) number: usize,
    pub(super) plan: Arc<Plan>,
    pub(super) shared: Arc<Shared>,
    pub(super) timer: Rc<Timer>,
    pub(super) traffic: RefCell<Traffic>,
    /// The last that this loop saw of each file.
    last_modified: RefCell<Vec<Option<HeaderValue>>>,
}

impl Desk {
    pub(super) fn new(
        number: usize,
        plan: Arc<Plan>,
        shared: Arc<Shared>,
        timer: Rc<Timer>,
    ) -> Self {
        let last_modified = RefCell::new(vec![None; plan.uris.len()]);
        Self { number, plan, shared, timer, traffic: RefCell::default(), last_modified }
    }

    /// True where no session or request may begin any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_interrupted() || self.timer.now_ns() > self.plan.end_ns
    }

    fn is_interrupted(&self) -> bool {
        self.timer.is_halted() || self.shared.halt.load(Ordering::Relaxed)
    }

    /// Counts a session for as long as it is open; none where too many are.
    fn open(&self) -> Option<Open<'_>> {
        let (shared, connections_max) = (&*self.shared, self.plan.connections_max);
        let n_open = shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        let open = Open { shared };
        if n_open > connections_max {
            shared.fail(Error::TooManySessions { connections_max });
            return None;
        }
        shared.open_max.fetch_max(n_open, Ordering::Relaxed);
        self.traffic.borrow_mut().sessions_begun += 1;
        Some(open)
    }
}

struct Open<'a> {
    shared: &'a Shared,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        // The runtime keeps the panic of a task to itself.
        if thread::panicking() {
            self.shared.has_panicked.store(true, Ordering::Relaxed);
            self.shared.halt.store(true, Ordering::Relaxed);
        }
    }
}

/// Makes a session that was to begin at `start_ns`; false where the load ends before the session does.
pub(super) async fn visit(
    desk: &Desk,
    session: &Session,
    agent: &HeaderValue,
    start_ns: u64,
) -> bool {
    let Some(_open) = desk.open() else { return false };
    let mut visitor = Visitor::new(desk, agent);
    let (mut due_ns, mut ended_ns) = (start_ns, start_ns);
    for ask in &session.asks {
        let gap_ns = desk.plan.scaled_ns(ask.gap_ns);
        due_ns = match desk.plan.spacing {
            Spacing::Closed => ended_ns.saturating_add(gap_ns),
            Spacing::Open => due_ns.saturating_add(gap_ns),
            Spacing::None => ended_ns,
        };
        if due_ns > desk.plan.end_ns {
            return false;
        }
        desk.timer.sleep_until(due_ns).await;
        if desk.is_interrupted() {
            return false;
        }
        if desk.timer.now_ns() > desk.plan.end_ns.saturating_add(LATE_MAX_NS) {
            desk.traffic.borrow_mut().not_sent += 1;
            return false;
        }
        ended_ns = visitor.make(*ask, due_ns).await;
    }
    desk.traffic.borrow_mut().sessions_ended += 1;
    true
}

/// One who makes a session.
struct Visitor<'a> {
    desk: &'a Desk,
    headers: HeaderMap,
    connection: Option<Connection>,
    /// Bytes of the body that is coming.
    bytes: Cell<u64>,
}

impl<'a> Visitor<'a> {
    fn new(desk: &'a Desk, agent: &HeaderValue) -> Self {
        let mut headers = HeaderMap::with_capacity(4);
        headers.insert(HOST, desk.plan.host.clone());
        headers.insert(USER_AGENT, agent.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        Self { desk, headers, connection: None, bytes: Cell::new(0) }
    }

    /// Makes a request and counts it. Gives back when it ended.
    async fn make(&mut self, ask: Ask, due_ns: u64) -> u64 {
        self.bytes.set(0);
        let outcome = timeout(ANSWER_WAIT, self.exchange(ask)).await;
        let desk = self.desk;
        let (plan, mut traffic) = (&*desk.plan, desk.traffic.borrow_mut());
        traffic.requests += 1;
        traffic.bytes += self.bytes.get();
        let ended_ns = match outcome.unwrap_or(Err(Failure::TooLong)) {
            Ok(reply) => {
                enter(&mut traffic, &reply, due_ns);
                judge(&mut traffic, &reply, ask, plan);
                desk.remember(ask.file, &reply);
                reply.ended_ns
            }
            Err(failure) => {
                if matches!(failure, Failure::TooLong) {
                    desk.shared.fail_unreached(plan, io::ErrorKind::TimedOut);
                }
                self.connection = None;
                traffic.failed += 1;
                traffic.latency.enter(desk.timer.now_ns().saturating_sub(due_ns));
                let uri = &plan.uris[ask.file as usize];
                traffic.tell(|| format!("GET {uri}: failed, {}", in_words(&failure)));
                desk.timer.now_ns()
            }
        };
        traffic.elapsed_ns = ended_ns.saturating_sub(plan.start_ns);
        desk.shared.set_requests(desk.number, traffic.requests);
        drop(traffic);
        desk.timer.wake_due();
        ended_ns
    }

    /// Sends a request over the kept connection. Where that breaks before anything came, which is
    /// what a server's closing it looks like, or where there is none, over a new one.
    async fn exchange(&mut self, ask: Ask) -> Result<Reply, Failure> {
        if let Some(mut connection) = self.connection.take()
            && connection.is_usable().await
        {
            match connection.exchange(self.request(ask), &self.bytes).await {
                Err(error) if connection.has_heard() => return Err(Failure::Broken(error)),
                Err(_) => {}
                Ok(reply) => {
                    self.connection = Some(connection);
                    return Ok(reply);
                }
            }
        }
        let mut connection = self.connect().await?;
        let reply = connection.exchange(self.request(ask), &self.bytes).await;
        self.connection = Some(connection);
        reply.map_err(Failure::Broken)
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let shared = &self.desk.shared;
        let made = Connection::make(self.desk.plan.address, &self.desk.timer).await;
        match &made {
            Ok(_) => {
                self.desk.traffic.borrow_mut().connections += 1;
                shared.is_reached.store(true, Ordering::Relaxed);
            }
            Err(Failure::Connect(error)) if !is_shortage(error) => {
                shared.fail_unreached(&self.desk.plan, error.kind());
            }
            Err(_) => {}
        }
        made
    }

    fn request(&self, ask: Ask) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.desk.plan.uris[ask.file as usize].clone();
        *request.headers_mut() = self.headers.clone();
        if ask.answer == Answer::Unchanged {
            let seen = self.desk.last_modified.borrow()[ask.file as usize].clone();
            if let Some(date) = seen.or_else(|| self.desk.plan.date_unchanged.clone()) {
                request.headers_mut().insert(IF_MODIFIED_SINCE, date);
            }
        }
        request
    }
}

impl Desk {
    /// Keeps the date of a file that was sent.
    fn remember(&self, file: u32, reply: &Reply) {
        let Some(date) = reply.last_modified.as_ref().filter(|_| reply.status == 200) else {
            return;
        };
        let known = &mut self.last_modified.borrow_mut()[file as usize];
        if known.as_ref() != Some(date) {
            // A copy: what came is a part of the buffer that it was read into.
            *known = HeaderValue::from_bytes(date.as_bytes()).ok();
        }
    }
}

fn enter(traffic: &mut Traffic, reply: &Reply, due_ns: u64) {
    *traffic.by_status.entry(reply.status).or_default() += 1;
    traffic.time.enter(reply.ended_ns.saturating_sub(reply.sent_ns));
    traffic.first_byte.enter(reply.heard_ns.saturating_sub(reply.sent_ns));
    traffic.late.enter(reply.sent_ns.saturating_sub(due_ns));
    traffic.latency.enter(reply.ended_ns.saturating_sub(due_ns));
}

/// Holds a response against what was expected.
fn judge(traffic: &mut Traffic, reply: &Reply, ask: Ask, plan: &Plan) {
    let (is_expected, expected) = match ask.answer {
        Answer::Whole => (matches!(reply.status, 200 | 206), StatusCode::OK),
        Answer::Unchanged => (matches!(reply.status, 200 | 304), StatusCode::NOT_MODIFIED),
        Answer::Missing => (matches!(reply.status, 404 | 410), StatusCode::NOT_FOUND),
    };
    if ask.answer == Answer::Unchanged && reply.status == 200 {
        traffic.sent_again += 1;
    }
    let uri = &plan.uris[ask.file as usize];
    if !is_expected {
        traffic.unexpected += 1;
        let (expected, got) = (expected.as_u16(), reply.status);
        traffic.tell(|| format!("GET {uri}: expected status {expected}, got {got}"));
    } else if reply.status == 200
        && let Some(size) = plan.sizes.as_ref().map(|sizes| sizes[ask.file as usize])
        && size != reply.bytes
    {
        traffic.unexpected += 1;
        traffic.tell(|| format!("GET {uri}: expected {size} bytes, got {}", reply.bytes));
    }
}

/// True where this host lacks ports or descriptors, whatever the server does.
fn is_shortage(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable || is_out_of_files(error)
}

fn is_out_of_files(error: &io::Error) -> bool {
    let none_left = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    none_left.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn in_words(failure: &Failure) -> String {
    match failure {
        Failure::Connect(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            "no local port is free: each closed connection holds one for a minute; begin fewer \
             sessions a second, or widen net.ipv4.ip_local_port_range"
                .to_owned()
        }
        Failure::Connect(error) if is_out_of_files(error) => {
            format!("{error}; allow more with `ulimit -n`")
        }
        Failure::Connect(error) => format!("no connection: {error}"),
        Failure::Broken(error) => match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
        Failure::TooLong => format!("no end of it within {} s", ANSWER_WAIT.as_secs()),
    }
}
