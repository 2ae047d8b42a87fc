//! Calls that touch files: on libuv's pool for promises, in place for the `Sync` forms.

use napi::bindgen_prelude::*;
use napi::ScopedTask;

use crate::failure;

/// What a call gave, on its way to JavaScript.
pub trait Given: Send {
    fn to_unknown<'env>(self: Box<Self>, env: &'env Env) -> Result<Unknown<'env>>;
}

impl<T: ToNapiValue + Send + 'static> Given for T {
    fn to_unknown<'env>(self: Box<Self>, env: &'env Env) -> Result<Unknown<'env>> {
        (*self).into_unknown(env)
    }
}

type Call = dyn FnOnce() -> edgelog_abi::Result<Box<dyn Given>> + Send;

/// A call that a thread of the pool will make. One type for all answers: what napi makes of each
/// type of work would take a gateway 3 KB.
pub struct Work {
    call: Option<Box<Call>>,
}

impl<'task> ScopedTask<'task> for Work {
    type Output = Box<dyn Given>;
    type JsValue = Unknown<'task>;

    fn compute(&mut self) -> Result<Box<dyn Given>> {
        match self.call.take() {
            Some(call) => call().map_err(failure::thrown),
            None => Err(failure::thrown(failure::broken("a task ran twice"))),
        }
    }

    fn resolve(&mut self, env: &'task Env, output: Box<dyn Given>) -> Result<Unknown<'task>> {
        output.to_unknown(env)
    }
}

/// A promise of what `call` gives.
pub fn later<T, F>(call: F) -> AsyncTask<Work>
where
    T: ToNapiValue + Send + 'static,
    F: FnOnce() -> edgelog_abi::Result<T> + Send + 'static,
{
    AsyncTask::new(Work {
        call: Some(Box::new(move || Ok(Box::new(call()?)))),
    })
}

/// What a call in place gave.
pub fn now<T>(result: edgelog_abi::Result<T>) -> Result<T> {
    result.map_err(failure::thrown)
}
