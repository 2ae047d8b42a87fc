//! One JavaScript environment (the main thread or a worker): its open logs, its waiting threads,
//! and how they end with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use edgelog_abi::{Error, Log, Status};
use napi::bindgen_prelude::*;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;

use crate::children::{Children, Release};
use crate::waiter::Answer;
use crate::work::now;

/// What a waiting thread hands to JavaScript: id of the wait, status, records, failure.
type AnswerArgs = FnArgs<(u32, i32, Option<Buffer>, Option<String>)>;
/// Weak: a wait alone does not keep the process alive.
type Deliver = ThreadsafeFunction<Answer, (), AnswerArgs, napi::Status, false, true, 0>;

/// A waiting thread calls into the library and nothing else.
const STACK_BYTES: usize = 256 * 1024;

/// The state of one environment.
pub struct Host {
    deliver: Deliver,
    logs: Mutex<Vec<(Weak<Log>, Weak<Children>)>>,
    /// What has a thread that waits.
    waiting: Children,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Host {
    /// Remembers `log`, and what holds files of it, for the end of the environment.
    pub fn adopt_log(&self, log: &Arc<Log>, children: &Arc<Children>) {
        let mut logs = lock(&self.logs);
        logs.retain(|(log, _)| log.strong_count() > 0);
        logs.push((Arc::downgrade(log), Arc::downgrade(children)));
    }

    /// Starts the thread on which `owner` waits.
    pub fn start<F>(&self, owner: Weak<dyn Release>, run: F) -> edgelog_abi::Result<()>
    where
        F: FnOnce() + Send + 'static,
    {
        let thread = thread::Builder::new()
            .name("edgelog-wait".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(run)
            .map_err(|_| Error::new(Status::NO_MEMORY, "no thread to wait on could be started"))?;
        let mut threads = lock(&self.threads);
        threads.retain(|other| !other.is_finished());
        threads.push(thread);
        drop(threads);
        self.waiting.adopt(owner);
        Ok(())
    }

    /// Hands `answer` to JavaScript, from any thread. Lost if the environment is ending.
    pub fn answer(&self, answer: Answer) {
        let _closing = self
            .deliver
            .call(answer, ThreadsafeFunctionCallMode::NonBlocking);
    }

    fn open_logs(&self) -> Vec<Arc<Log>> {
        let logs = lock(&self.logs);
        logs.iter().filter_map(|(log, _)| log.upgrade()).collect()
    }

    fn open_children(&self) -> Vec<Arc<Children>> {
        let logs = lock(&self.logs);
        let children = logs.iter().filter_map(|(_, children)| children.upgrade());
        children.collect()
    }

    /// Ends every wait, joins the threads, closes the logs. No thread outlives its environment.
    fn end(&self) {
        self.waiting.release();
        let threads: Vec<_> = lock(&self.threads).drain(..).collect();
        for thread in threads {
            let _panicked = thread.join();
        }
        for children in self.open_children() {
            children.finish();
        }
        for log in self.open_logs() {
            // Nobody is left who could be told.
            let _lost = log.close();
        }
    }
}

/// The state for this environment; `deliver` is called with each [`Answer`].
#[napi]
pub fn host(env: Env, deliver: Function<'_, AnswerArgs, ()>) -> Result<External<Arc<Host>>> {
    let deliver = deliver
        .build_threadsafe_function::<Answer>()
        .callee_handled::<false>()
        .weak::<true>()
        .build_callback(|context| {
            let Answer {
                id,
                status,
                packed,
                failure,
            } = context.value;
            Ok(FnArgs::from((
                id,
                status,
                packed.map(Buffer::from),
                failure,
            )))
        })?;
    let host = Arc::new(Host {
        deliver,
        logs: Mutex::default(),
        waiting: Children::default(),
        threads: Mutex::default(),
    });
    // Hooks run last in, first out: before the function above is taken down.
    env.add_env_cleanup_hook(Arc::clone(&host), |host| host.end())?;
    Ok(External::new(host))
}

/// Hands what is buffered in every open log to the system: for the process's `exit` event.
#[napi]
pub fn host_flush(host: &External<Arc<Host>>) -> Result<()> {
    let mut result = Ok(());
    for log in host.open_logs() {
        if let Err(error) = log.flush() {
            if error.status() != Status::CLOSED && error.status() != Status::READ_ONLY {
                result = Err(error);
            }
        }
    }
    now(result)
}

/// The data behind `mutex`; a thread that panicked left it whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
