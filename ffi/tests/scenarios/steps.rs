//! One step of a scenario: the calls that do what its operation says.

use crate::calls::{self, Answer as Called, From, Got, Log, Topic};
use crate::groups::{self, Claim, Consumer, Filter, Group};
use crate::ids::Ids;
use crate::matches::Answer;
use edgelog::take::{EDGELOG_TAKE_AT_MOST_ONCE, EDGELOG_TAKE_DUE, EDGELOG_TAKE_OWN};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A log, and what its records are called.
struct Shared {
    directory: PathBuf,
    log: RwLock<Option<Log>>,
    ids: Mutex<BTreeMap<String, Ids>>,
}

pub struct World {
    shared: Arc<Shared>,
    threads: BTreeMap<String, JoinHandle<Answer>>,
}

impl World {
    pub fn new(name: &str) -> World {
        let name = format!("edgelog-scenario-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let log = RwLock::new(Some(calls::open(&directory)));
        let shared = Arc::new(Shared {
            directory,
            log,
            ids: Mutex::default(),
        });
        World {
            shared,
            threads: BTreeMap::new(),
        }
    }

    pub fn step(&mut self, operation: &Value) -> Answer {
        match text(operation, "op") {
            "spawn" => {
                let shared = Arc::clone(&self.shared);
                let run = operation["run"].clone();
                let thread = std::thread::spawn(move || shared.timed(&run));
                self.threads
                    .insert(text(operation, "thread").to_owned(), thread);
                // It waits by then.
                std::thread::sleep(Duration::from_millis(100));
                plain(Ok(json!("OK")))
            }
            "join" => {
                let thread = self.threads.remove(text(operation, "thread"));
                thread.unwrap().join().unwrap()
            }
            _ => plain(self.shared.step(operation)),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for (_, thread) in std::mem::take(&mut self.threads) {
            let _ = thread.join();
        }
        self.shared.log.write().unwrap().take();
        std::fs::remove_dir_all(&self.shared.directory).unwrap();
    }
}

fn plain(result: Called<Value>) -> Answer {
    Answer {
        result,
        took_ms: None,
    }
}

// ---- What an operation says

fn text<'a>(operation: &'a Value, key: &str) -> &'a str {
    operation[key].as_str().unwrap()
}

fn text_or<'a>(operation: &'a Value, key: &str, default: &'a str) -> &'a str {
    operation[key].as_str().unwrap_or(default)
}

fn number_or(operation: &Value, key: &str, default: u64) -> u64 {
    operation[key].as_u64().unwrap_or(default)
}

fn is(operation: &Value, key: &str) -> bool {
    operation[key].as_bool().unwrap_or(false)
}

fn texts(operation: &Value, key: &str) -> Vec<String> {
    let list = operation[key].as_array().unwrap().iter();
    list.map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// As many as a scenario without a count can have.
const ALL: u64 = 100;

fn count(operation: &Value) -> usize {
    number_or(operation, "count", ALL) as usize
}

fn timeout(operation: &Value) -> u32 {
    number_or(operation, "block_ms", 0) as u32
}

fn unless_empty(list: Vec<Value>) -> Value {
    if list.is_empty() {
        Value::Null
    } else {
        list.into()
    }
}

/// What a scenario writes into a record.
fn fields(operation: &Value) -> String {
    match &operation["fields"] {
        Value::Null => json!([["f", "v"]]).to_string(),
        fields => fields.to_string(),
    }
}

impl Shared {
    fn timed(&self, operation: &Value) -> Answer {
        let start = Instant::now();
        let result = self.step(operation);
        Answer {
            result,
            took_ms: Some(start.elapsed().as_millis() as u64),
        }
    }

    fn step(&self, operation: &Value) -> Called<Value> {
        match text(operation, "op") {
            "add" => self.add(operation, &[text(operation, "id").to_owned()]),
            "add_many" => self.add(operation, &texts(operation, "ids")),
            "fill" => {
                let id = |n: u64| text(operation, "id_fmt").replace('#', &n.to_string());
                (1..=number_or(operation, "n", 0))
                    .try_fold(Value::Null, |_, n| self.add(operation, &[id(n)]))
            }
            "del" => self.remove(operation, &texts(operation, "ids")),
            "trim" => self.trim(operation),
            "len" => Ok(calls::partition_stats(&self.topic(operation)?)?
                .records
                .into()),
            "exists" => Ok(u64::from(self.topic(operation).is_ok()).into()),
            "range" => self.range(operation),
            "read" => self.read(operation),
            "destroy_stream" => {
                let name = text_or(operation, "stream", "s");
                self.ids.lock().unwrap().remove(name);
                self.with_log(|log| calls::topic_delete(log, name))?;
                Ok(json!(1))
            }
            "reopen" => {
                let mut log = self.log.write().unwrap();
                log.take();
                *log = Some(calls::open(&self.directory));
                Ok(Value::Null)
            }
            "sleep" => {
                std::thread::sleep(Duration::from_millis(number_or(operation, "ms", 0)));
                Ok(Value::Null)
            }
            _ => self.step_of_group(operation),
        }
    }

    fn step_of_group(&self, operation: &Value) -> Called<Value> {
        match text(operation, "op") {
            "group_create" => self.group_create(operation),
            "group_set_id" => {
                let start = self.start(operation, text(operation, "id"));
                groups::seek(&self.group(operation)?, start).map(|()| json!("OK"))
            }
            "group_destroy" => {
                let name = text_or(operation, "group", "g");
                match groups::group_delete(&self.topic(operation)?, name) {
                    Err(status) if status == "NOT_FOUND" => Ok(json!(0)),
                    other => other.map(|()| json!(1)),
                }
            }
            "consumer_create" => {
                let group = self.group(operation)?;
                let before = groups::consumers(&group)?.len();
                self.consumer(operation)?;
                Ok((groups::consumers(&group)?.len() - before).into())
            }
            "consumer_delete" => {
                let group = self.group(operation)?;
                match groups::remove_consumer(&group, text(operation, "consumer")) {
                    Err(status) if status == "NOT_FOUND" => Ok(json!(0)),
                    other => other.map(Value::from),
                }
            }
            "group_read" => self.group_read(operation),
            "claim_read" => self.claim_read(operation),
            "claim" => self.claim(operation),
            "autoclaim" => self.claim_idle(operation),
            "ack" => {
                let offsets = self.offsets(operation);
                Ok(groups::ack(&self.group(operation)?, &offsets)?.into())
            }
            "nack" => {
                let (offsets, counts) = (self.offsets(operation), operation["mode"] == "fail");
                Ok(groups::nack(&self.group(operation)?, &offsets, counts)?.into())
            }
            "pending_summary" => self.pending_summary(operation),
            "pending_range" => self.pending_range(operation),
            "info_stream" => self.info_stream(operation),
            "info_groups" => Ok(calls::group_count(&self.topic(operation)?)?.into()),
            "info_group" => self.info_group(operation),
            "info_consumers" => self.info_consumers(operation),
            other => panic!("no operation {other}"),
        }
    }

    // ---- Where it is done

    fn with_log<T>(&self, use_it: impl FnOnce(&Log) -> T) -> T {
        use_it(self.log.read().unwrap().as_ref().unwrap())
    }

    fn open_topic(&self, operation: &Value, create: bool) -> Called<Topic> {
        self.with_log(|log| calls::topic(log, text_or(operation, "stream", "s"), create))
    }

    fn topic(&self, operation: &Value) -> Called<Topic> {
        self.open_topic(operation, false)
    }

    fn group(&self, operation: &Value) -> Called<Group> {
        groups::group(&self.topic(operation)?, text_or(operation, "group", "g"))
    }

    fn consumer(&self, operation: &Value) -> Called<Consumer> {
        groups::consumer(&self.group(operation)?, text(operation, "consumer"))
    }

    fn ids<T>(&self, operation: &Value, use_it: impl FnOnce(&mut Ids) -> T) -> T {
        let mut ids = self.ids.lock().unwrap();
        let name = text_or(operation, "stream", "s");
        use_it(ids.entry(name.to_owned()).or_default())
    }

    fn offsets(&self, operation: &Value) -> Vec<u64> {
        let ids = texts(operation, "ids");
        self.ids(operation, |known| {
            ids.iter().map(|id| known.offset(id)).collect()
        })
    }

    fn id(&self, operation: &Value, offset: u64) -> Value {
        self.ids(operation, |ids| ids.of(offset).into())
    }

    /// The first offset behind an id; `None` for the end.
    fn start(&self, operation: &Value, id: &str) -> Option<u64> {
        (id != "$").then(|| self.ids(operation, |ids| ids.behind(id, 0)))
    }

    /// Records as the scenario wants to see them.
    fn shown(&self, operation: &Value, records: &[Got]) -> Vec<Value> {
        let ids_only = is(operation, "ids_only") || is(operation, "just_id");
        let shown = records.iter().map(|record| {
            let id = self.id(operation, record.offset);
            if ids_only {
                return id;
            }
            json!([id, serde_json::from_str::<Value>(&record.value).unwrap()])
        });
        shown.collect()
    }

    // ---- Records

    fn add(&self, operation: &Value, ids: &[String]) -> Called<Value> {
        let topic = self.open_topic(operation, true)?;
        let values = vec![fields(operation); ids.len()];
        self.ids(operation, |known| -> Called<()> {
            assert_eq!(calls::append(&topic, &values)?, known.len());
            ids.iter().for_each(|id| known.add(id));
            Ok(())
        })?;
        if operation.get("maxlen").is_some() {
            self.trim(operation)?;
        }
        Ok(ids[0].clone().into())
    }

    fn remove(&self, operation: &Value, ids: &[String]) -> Called<Value> {
        let offsets: Vec<u64> = self.ids(operation, |known| {
            ids.iter().map(|id| known.offset(id)).collect()
        });
        Ok(calls::remove(&self.topic(operation)?, &offsets)?.into())
    }

    /// All but the last so many, or all before an id.
    fn trim(&self, operation: &Value) -> Called<Value> {
        let topic = self.topic(operation)?;
        let all = calls::read(&topic, From::Offset(0), 1_000, 0)?.unwrap_or_default();
        let offsets: Vec<u64> = all.iter().map(|record| record.offset).collect();
        let end = match operation["minid"].as_str() {
            Some(id) => {
                let first = self.ids(operation, |ids| ids.from(id));
                offsets.partition_point(|offset| *offset < first)
            }
            None => {
                let stay = number_or(operation, "maxlen", 0) as usize;
                offsets.len().saturating_sub(stay)
            }
        };
        Ok(calls::remove(&topic, &offsets[..end])?.into())
    }

    fn range(&self, operation: &Value) -> Called<Value> {
        let topic = self.topic(operation)?;
        let all = calls::read(&topic, From::Offset(0), 1_000, 0)?.unwrap_or_default();
        Ok(self.shown(operation, &all).into())
    }

    /// Of one topic, or one after the other.
    fn read(&self, operation: &Value) -> Called<Value> {
        let Some(streams) = operation["streams"].as_array() else {
            return Ok(unless_empty(self.read_one(operation)?));
        };
        let mut all = Vec::new();
        for stream in streams {
            let mut one = operation.clone();
            (one["stream"], one["from"]) = (stream[0].clone(), stream[1].clone());
            let records = self.read_one(&one)?;
            if !records.is_empty() {
                all.push(json!([stream[0], records]));
            }
        }
        Ok(unless_empty(all))
    }

    fn read_one(&self, operation: &Value) -> Called<Vec<Value>> {
        let topic = self.open_topic(operation, true)?;
        let (from, max) = match text(operation, "from") {
            "$" => (From::Latest, count(operation)),
            // What it reads back from the end is one record.
            "+" => (From::Last, 1),
            id => {
                let behind = self.ids(operation, |ids| ids.behind(id, 0));
                (From::Offset(behind), count(operation))
            }
        };
        let records = calls::read(&topic, from, max, timeout(operation))?;
        Ok(self.shown(operation, &records.unwrap_or_default()))
    }

    // ---- Groups

    fn group_create(&self, operation: &Value) -> Called<Value> {
        let topic = self.open_topic(operation, is(operation, "mkstream"))?;
        let start = self.start(operation, text(operation, "start"));
        groups::group_create(&topic, text_or(operation, "group", "g"), start)?;
        Ok(json!("OK"))
    }

    fn group_read(&self, operation: &Value) -> Called<Value> {
        if let Some(streams) = operation["streams"].as_array() {
            let mut all = Vec::new();
            for stream in streams {
                let mut one = operation.clone();
                (one["stream"], one["from"]) = (stream[0].clone(), stream[1].clone());
                one["ids_only"] = true.into();
                one.as_object_mut().unwrap().remove("streams");
                all.push(json!([stream[0], self.group_read(&one)?]));
            }
            return Ok(all.into());
        }
        let consumer = self.consumer(operation)?;
        match text_or(operation, "from", ">") {
            ">" => {
                let (take, flags) = (EDGELOG_TAKE_DUE, at_most_once(operation));
                let max = count(operation);
                let records = groups::take(&consumer, take, flags, max, timeout(operation))?;
                Ok(unless_empty(self.shown(operation, &records)))
            }
            id => {
                let behind = self.ids(operation, |ids| ids.behind(id, 0));
                let mut own = groups::take(&consumer, EDGELOG_TAKE_OWN, 0, 1_000, 0)?;
                own.retain(|record| record.offset >= behind);
                own.sort_by_key(|record| record.offset);
                own.truncate(count(operation));
                Ok(self.shown(operation, &own).into())
            }
        }
    }

    /// What is pending for so long comes again through the plain read, when the group says so.
    fn claim_read(&self, operation: &Value) -> Called<Value> {
        if operation.get("from").is_some() {
            return self.group_read(operation);
        }
        // 0 is the default, so it is a millisecond.
        let min_idle_ms = number_or(operation, "min_idle", 0).max(1);
        std::thread::sleep(Duration::from_millis(2));
        groups::time_out(&self.group(operation)?, min_idle_ms as u32)?;
        let consumer = self.consumer(operation)?;
        let (take, flags) = (EDGELOG_TAKE_DUE, at_most_once(operation));
        let (max, timeout_ms) = (count(operation), timeout(operation));
        let records = groups::take_once(&consumer, take, flags, max, timeout_ms)?;
        let shown = records.iter().map(|record| {
            let id = self.id(operation, record.offset);
            json!([id, record.deliveries - 1])
        });
        Ok(unless_empty(shown.collect()))
    }

    fn claim(&self, operation: &Value) -> Called<Value> {
        let consumer = self.consumer(operation)?;
        let claim = Claim {
            offsets: Some(self.offsets(operation)),
            min_idle_ms: number_or(operation, "min_idle", 0),
            max: 1_000,
            counts: !is(operation, "just_id"),
        };
        let (records, _) = groups::claim(&consumer, &claim)?;
        Ok(self.shown(operation, &records).into())
    }

    /// Without a cursor to carry about; of what is gone it tells how much.
    fn claim_idle(&self, operation: &Value) -> Called<Value> {
        let consumer = self.consumer(operation)?;
        let claim = Claim {
            offsets: None,
            min_idle_ms: number_or(operation, "min_idle", 0),
            max: count(operation),
            counts: !is(operation, "just_id"),
        };
        let (records, gone) = groups::claim(&consumer, &claim)?;
        let claimed = records.iter().map(|one| self.id(operation, one.offset));
        let claimed: Vec<Value> = claimed.collect();
        let deleted = if gone == 0 { json!([]) } else { gone.into() };
        Ok(json!({"cursor": "0-0", "claimed": claimed, "deleted": deleted}))
    }

    // ---- What is known of groups

    fn pending_summary(&self, operation: &Value) -> Called<Value> {
        let group = self.group(operation)?;
        let all = groups::pending(&group, &Filter::default())?;
        let (pending, members) = (groups::stats(&group)?.pending, groups::consumers(&group)?);
        let members = members.iter().filter(|member| member.pending != 0);
        let members = members.map(|member| json!([member.name, member.pending]));
        let end = |one: Option<&groups::Pending>| one.map(|one| self.id(operation, one.offset));
        Ok(json!({
            "count": pending,
            "min": end(all.first()),
            "max": end(all.last()),
            "consumers": members.collect::<Vec<_>>(),
        }))
    }

    fn pending_range(&self, operation: &Value) -> Called<Value> {
        let mut filter = Filter {
            consumer: operation["consumer"].as_str().map(str::to_owned),
            min_idle_ms: number_or(operation, "min_idle", 0),
            max: count(operation) as u32,
            ..Filter::default()
        };
        self.ids(operation, |ids| {
            if let Some(start) = operation["start"].as_str() {
                filter.first = ids.from(start);
            }
            if let Some(end) = operation["end"].as_str() {
                filter.end = ids.behind(end, u64::MAX);
            }
        });
        let all = groups::pending(&self.group(operation)?, &filter)?;
        let shown = all.iter().map(|one| {
            let id = self.id(operation, one.offset);
            if is(operation, "with_idle") {
                return json!([id, one.owner, one.idle_ms, one.deliveries]);
            }
            json!([id, one.owner, one.deliveries])
        });
        Ok(shown.collect())
    }

    fn info_stream(&self, operation: &Value) -> Called<Value> {
        let topic = self.topic(operation)?;
        let stats = calls::partition_stats(&topic)?;
        Ok(json!({
            "length": stats.records,
            "groups": calls::group_count(&topic)?,
            "last_id": self.id(operation, stats.next_offset - 1),
            "entries_added": stats.next_offset,
        }))
    }

    fn info_group(&self, operation: &Value) -> Called<Value> {
        let group = self.group(operation)?;
        let (stats, position) = (groups::stats(&group)?, groups::position(&group)?);
        let last = position.checked_sub(1);
        let last = last.map_or(json!("0-0"), |offset| self.id(operation, offset));
        Ok(json!({
            "last_delivered": last,
            "entries_read": position,
            "consumers": stats.consumers,
            "pending": stats.pending,
            "lag": stats.lag,
        }))
    }

    fn info_consumers(&self, operation: &Value) -> Called<Value> {
        let members = groups::consumers(&self.group(operation)?)?;
        let shown = members.iter().map(|one| {
            if !is(operation, "with_times") {
                return json!([one.name, one.pending]);
            }
            let delivered = one.delivered_ago_ms.map_or(json!(-1), Value::from);
            json!([one.name, one.pending, one.seen_ago_ms, delivered])
        });
        Ok(shown.collect())
    }
}

fn at_most_once(operation: &Value) -> u32 {
    if is(operation, "noack") {
        EDGELOG_TAKE_AT_MOST_ONCE
    } else {
        0
    }
}
