//! Whether an answer is as a scenario says.

use serde_json::Value;

/// What a step answered.
#[derive(Debug)]
pub struct Answer {
    /// Or the name of the status.
    pub result: Result<Value, String>,
    pub took_ms: Option<u64>,
}

/// The statuses that stand for an error of the scenarios.
fn statuses(error: &str) -> &'static [&'static str] {
    match error {
        "NO_GROUP" | "NO_STREAM" => &["NOT_FOUND", "DELETED"],
        "BAD_ARG" | "BAD_ID" => &["INVALID"],
        "BUSY" => &["BUSY"],
        other => panic!("no status is known for {other}"),
    }
}

pub fn is_as(expected: &Value, answer: &Answer) -> Result<(), String> {
    if let Some(error) = expected.get("error") {
        let error = error.as_str().unwrap();
        match &answer.result {
            Err(status) if statuses(error).contains(&status.as_str()) => {}
            other => return Err(format!("{other:?} where {error} was expected")),
        }
    }
    if let Some(result) = expected.get("result") {
        match &answer.result {
            Ok(value) if fits(result, value) => {}
            Ok(value) => return Err(format!("{value} where {result} was expected")),
            Err(status) => return Err(format!("{status} where {result} was expected")),
        }
    }
    if let Some(took_ms) = expected.get("took_ms") {
        let value = Value::from(answer.took_ms);
        if !fits(took_ms, &value) {
            return Err(format!("it took {value} ms where {took_ms} was expected"));
        }
    }
    Ok(())
}

/// A value, or what a matcher stands for. Of an object only what is expected is looked at.
fn fits(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Object(map), _) if map.keys().any(|key| key.starts_with('@')) => {
            map.iter().all(|(name, with)| meets(name, with, value))
        }
        (Value::Object(map), Value::Object(_)) => map.iter().all(|(k, v)| fits(v, &value[k])),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b))
        }
        _ => expected == value,
    }
}

fn meets(matcher: &str, with: &Value, value: &Value) -> bool {
    let number = value.as_u64();
    match matcher {
        "@any" => true,
        "@ge" => number >= with.as_u64(),
        "@lt" => number.is_some() && number < with.as_u64(),
        "@between" => with[0].as_u64() <= number && number <= with[1].as_u64(),
        "@oneof" => with.as_array().unwrap().iter().any(|one| fits(one, value)),
        other => panic!("no matcher {other}"),
    }
}
