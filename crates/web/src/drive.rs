//! Makes a load: one thread for each event loop, one task for each user or open session.

mod connection;
mod plan;
mod visit;

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use ioscape_engine::Stopwatch;
use ioscape_model::Spacing;
use ioscape_trace::site::Session;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedSender, WeakUnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

use crate::error::Error;
use crate::job::Job;
use crate::runtime::{halted, oversee, runtimes};
use crate::timer::Timer;
use crate::traffic::Traffic;

use plan::{Plan, Shared};
use visit::{Desk, visit};

/// Time that requests in flight have to end when the load is interrupted.
const GRACE: Duration = Duration::from_secs(1);
/// Time between the making of the threads and the start of the load, nanoseconds.
const SETTLE_NS: u64 = 2_000_000;

type Sessions<'a> = Mutex<Box<dyn Iterator<Item = Session> + Send + 'a>>;

/// Makes a load until its sessions are over, its time is up or it is interrupted. Looks in several
/// times a second with the number of requests done.
///
/// # Errors
/// [`Error`] where nobody answers at the server's address, a path or header cannot be sent, more sessions
/// would be open than may be, or a thread lacks descriptors. A request that fails is counted.
///
/// # Panics
/// If a session asks for a file that `paths` or `sizes` do not have, `speed` is not above 0, or
/// the iterator of sessions panics.
pub fn drive(job: Job<'_>, on_progress: &mut dyn FnMut(u64)) -> Result<Traffic, Error> {
    let mut plan = Plan::new(&job)?;
    let runtimes = runtimes(job.threads)?;
    let shared = Arc::new(Shared::new(runtimes.len()));
    plan.begin_at(job.watch.now_ns() + SETTLE_NS);
    let (plan, watch, sessions) = (Arc::new(plan), job.watch, Mutex::new(job.sessions));
    let mut traffic = thread::scope(|scope| {
        let (running, ended) = mpsc::channel::<()>();
        let start = |(number, runtime): (usize, Runtime)| {
            let (plan, shared, running) = (plan.clone(), shared.clone(), running.clone());
            let sessions = &sessions;
            scope.spawn(move || {
                let _running = running;
                run_loop(&runtime, watch, sessions, (number, plan, shared))
            })
        };
        let threads: Vec<_> = runtimes.into_iter().enumerate().map(start).collect();
        drop(running);
        oversee(&ended, job.interrupt, &shared.halt, || on_progress(shared.requests()));
        let mut all = Traffic::default();
        for thread in threads {
            all.add(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    if let Some(error) = shared.error() {
        return Err(error);
    }
    assert!(!shared.has_panicked.load(Ordering::Relaxed), "the task of a session panicked");
    traffic.sessions_at_a_time = shared.open_max.load(Ordering::Relaxed) as u64;
    on_progress(traffic.requests);
    Ok(traffic)
}

/// Message of a user or session to the loop that it is in.
enum Message {
    /// A user is free for a session. Nobody answers where there is none.
    Free(oneshot::Sender<Session>),
    /// The load ends without the sessions that are still open.
    GiveUp,
}

fn run_loop(
    runtime: &Runtime,
    watch: Stopwatch,
    sessions: &Sessions<'_>,
    (number, plan, shared): (usize, Arc<Plan>, Arc<Shared>),
) -> Traffic {
    let local = LocalSet::new();
    local.block_on(runtime, async {
        let timer = match Timer::start(watch) {
            Ok(timer) => timer,
            Err(source) => {
                shared.fail(Error::EventLoop { source });
                return Traffic::default();
            }
        };
        let desk = Rc::new(Desk::new(number, plan, shared, timer));
        make_sessions(&desk, sessions).await;
        desk.traffic.take()
    })
}

async fn make_sessions(desk: &Rc<Desk>, sessions: &Sessions<'_>) {
    let (sender, mut messages) = unbounded_channel();
    spawn_local(give_up_when_halted(desk.clone(), sender.downgrade()));
    desk.timer.sleep_until(desk.plan.start_ns).await;
    match desk.plan.users {
        Some(users) => {
            for slot in (0..users).skip(desk.number).step_by(desk.shared.n_loops()) {
                spawn_local(be_user(desk.clone(), slot, sender.clone()));
            }
        }
        None => open_sessions(desk, sessions, &sender).await,
    }
    drop(sender);
    // Ends too when nobody is left who could send.
    while let Some(Message::Free(user)) = messages.recv().await {
        if let Some(session) = next(desk, sessions) {
            // A user that is gone by now needs none.
            let _ = user.send(session);
        }
    }
}

/// Begins each session at its time. Each loop holds one that is to begin, so that they begin in
/// order, and a loop that is busy takes fewer.
async fn open_sessions(
    desk: &Rc<Desk>,
    sessions: &Sessions<'_>,
    sender: &UnboundedSender<Message>,
) {
    while let Some(session) = next(desk, sessions) {
        let start_ns = desk.plan.start_ns.saturating_add(desk.plan.scaled_ns(session.start_ns));
        if start_ns > desk.plan.end_ns {
            return;
        }
        desk.timer.sleep_until(start_ns).await;
        if desk.is_over() {
            return;
        }
        let (desk, open) = (desk.clone(), sender.clone());
        spawn_local(async move {
            let _open = open;
            let agent = desk.plan.agent(session.number);
            visit(&desk, &session, &agent, start_ns).await;
        });
        // Sessions that are due together must not keep those that have begun waiting.
        tokio::task::yield_now().await;
    }
}

async fn be_user(desk: Rc<Desk>, slot: u32, sender: UnboundedSender<Message>) {
    let agent = desk.plan.agent(u64::from(slot));
    loop {
        let (give, take) = oneshot::channel();
        if sender.send(Message::Free(give)).is_err() {
            return;
        }
        let Ok(session) = take.await else { return };
        let wait_ns = match desk.plan.spacing {
            Spacing::None => 0,
            _ => desk.plan.scaled_ns(session.start_ns),
        };
        let begun_ns = desk.timer.now_ns().saturating_add(wait_ns);
        // A user whose pause goes on beyond the end is still there then: no other takes the place.
        if begun_ns > desk.plan.end_ns || !visit(&desk, &session, &agent, begun_ns).await {
            return;
        }
    }
}

fn next(desk: &Desk, sessions: &Sessions<'_>) -> Option<Session> {
    if desk.is_over() {
        return None;
    }
    // A lock that another loop left by a panic ends the load, and that loop's end tells of it.
    let mut sessions = sessions.lock().ok()?;
    let session = sessions.next()?;
    let n_files = desk.plan.n_files();
    let known = session.asks.iter().all(|ask| (ask.file as usize) < n_files);
    assert!(known, "session {} asks for a file beyond the {n_files} known", session.number);
    Some(session)
}

async fn give_up_when_halted(desk: Rc<Desk>, sender: WeakUnboundedSender<Message>) {
    halted(desk.timer.clone(), desk.shared.halt.clone()).await;
    tokio::time::sleep(GRACE).await;
    if let Some(sender) = sender.upgrade() {
        // Nobody hears it where all have ended meanwhile.
        let _ = sender.send(Message::GiveUp);
    }
}
