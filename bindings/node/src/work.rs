//! Calls that touch files: on libuv's pool for promises, in place for the `Sync` forms.

use napi::bindgen_prelude::*;
use napi::ScopedTask;

use crate::failure;

/// A call that a thread of the pool will make.
pub struct Work<T> {
    call: Option<Box<dyn FnOnce() -> edgelog_abi::Result<T> + Send>>,
}

impl<'task, T: ToNapiValue + Send + 'static> ScopedTask<'task> for Work<T> {
    type Output = T;
    type JsValue = Unknown<'task>;

    fn compute(&mut self) -> Result<T> {
        match self.call.take() {
            Some(call) => call().map_err(failure::thrown),
            None => Err(failure::thrown(failure::broken("a task ran twice"))),
        }
    }

    fn resolve(&mut self, env: &'task Env, output: T) -> Result<Unknown<'task>> {
        output.into_unknown(env)
    }
}

/// A promise of what `call` gives.
pub fn later<T, F>(call: F) -> AsyncTask<Work<T>>
where
    T: ToNapiValue + Send + 'static,
    F: FnOnce() -> edgelog_abi::Result<T> + Send + 'static,
{
    AsyncTask::new(Work {
        call: Some(Box::new(call)),
    })
}

/// What a call in place gave.
pub fn now<T>(result: edgelog_abi::Result<T>) -> Result<T> {
    result.map_err(failure::thrown)
}
