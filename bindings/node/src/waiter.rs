//! The thread on which one reader or consumer waits. libuv's pool has four threads for everything;
//! a wait there would hold up the process's files and name look-ups.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, Weak};

use edgelog_abi::{Result, Status};

use crate::children::Release;
use crate::failure::{broken, message};
use crate::host::{lock, Host};

/// What JavaScript is told at the end of a wait.
pub struct Answer {
    /// Of the wait.
    pub id: u32,
    /// Why there is nothing, if there is nothing.
    pub status: i32,
    /// What came.
    pub packed: Option<Vec<u8>>,
    /// What went wrong, see [`crate::failure`].
    pub failure: Option<String>,
}

/// What a wait gave.
pub enum Given {
    /// What came, packed.
    Packed(Vec<u8>),
    /// END, TIMEOUT or WOKEN.
    Nothing(Status),
}

type Job = Box<dyn FnOnce() -> Answer + Send>;

/// The thread of one handle: started with the first wait, ended when the handle is.
#[derive(Default)]
pub struct Waiter {
    /// Without it, the thread ends after the wait under way.
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Waiter {
    /// Has the thread wait; the answer comes under `id`. `owner` is released with the environment.
    pub fn ask<F>(&self, host: &Arc<Host>, owner: Weak<dyn Release>, id: u32, wait: F) -> Result<()>
    where
        F: FnOnce() -> Result<Given> + Send + 'static,
    {
        let mut jobs = lock(&self.jobs);
        let jobs = match jobs.as_mut() {
            Some(jobs) => jobs,
            None => jobs.insert(start(host, owner)?),
        };
        jobs.send(Box::new(move || answer(id, wait())))
            .map_err(|_| broken("the thread that waits has ended"))
    }

    /// Ends the thread after the wait under way.
    pub fn end(&self) {
        lock(&self.jobs).take();
    }
}

fn start(host: &Arc<Host>, owner: Weak<dyn Release>) -> Result<Sender<Job>> {
    let (jobs, received) = mpsc::channel();
    let own_host = Arc::clone(host);
    host.start(owner, move || run(&own_host, &received))?;
    Ok(jobs)
}

fn run(host: &Host, jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        host.answer(job());
    }
}

fn answer(id: u32, given: Result<Given>) -> Answer {
    let mut answer = Answer {
        id,
        status: Status::OK.code(),
        packed: None,
        failure: None,
    };
    match given {
        Ok(Given::Packed(packed)) => answer.packed = Some(packed),
        Ok(Given::Nothing(status)) => answer.status = status.code(),
        Err(error) => answer.failure = Some(message(&error)),
    }
    answer
}
