//! A model of an object store, which executes one request at a time.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::exchange::{Answer, ObjectTag, Request, StoreTime, StoredObject};
use crate::key::ObjectKey;

/// The objects of the store.
#[derive(Debug, Default)]
pub(super) struct ModelStore {
    pub(super) objects: BTreeMap<ObjectKey, StoredObject>,
    pub(super) now: StoreTime,
    writes: u64,
}

impl ModelStore {
    /// Executes a request.
    pub(super) fn execute(&mut self, request: &Request) -> Answer {
        match request {
            Request::Get(key) => {
                let object = self.objects.get(key).cloned();
                object.map_or(Answer::Missing, Answer::Object)
            }
            Request::Verify(key, hash) => match self.objects.get(key) {
                Some(object) if object.body == hash.0.as_bytes() => Answer::Done,
                _ => Answer::Missing,
            },
            Request::List(prefix) => {
                let keys = self.objects.keys();
                let found = keys.filter(|key| key.as_str().starts_with(prefix.as_str()));
                Answer::Listed(found.cloned().collect())
            }
            Request::ListBefore(prefix, time) => {
                let found = self.objects.iter().filter(|(key, object)| {
                    key.as_str().starts_with(prefix.as_str()) && object.modified < *time
                });
                Answer::Listed(found.map(|(key, _)| key.clone()).collect())
            }
            Request::Create(key, body) => self.create(key, body.clone()),
            Request::Upload(key, hash) => self.create(key, hash.0.clone().into()),
            Request::Swap(key, tag, body) => match self.objects.get(key) {
                Some(object) if object.tag == *tag => self.write(key, body.clone()),
                _ => Answer::Refused,
            },
            Request::Delete(key) => {
                self.objects.remove(key);
                Answer::Done
            }
        }
    }

    fn create(&mut self, key: &ObjectKey, body: Bytes) -> Answer {
        match self.objects.contains_key(key) {
            true => Answer::Refused,
            false => self.write(key, body),
        }
    }

    fn write(&mut self, key: &ObjectKey, body: Bytes) -> Answer {
        self.writes += 1;
        let object = StoredObject {
            body,
            tag: ObjectTag(self.writes.to_string()),
            modified: self.now,
        };
        self.objects.insert(key.clone(), object);
        Answer::Done
    }
}
