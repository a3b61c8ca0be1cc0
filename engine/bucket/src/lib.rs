//! The object store of a fleet: opens it, and sends the requests of the [`fleet`] protocol.
//!
//! | module | job |
//! |---|---|
//! | [`store`] | sends requests, and names the cause of a failure |
//! | [`packed`] | the content objects of a folder |
//! | [`history`] | the versions of a tenant |
//! | [`run`] | publishes and collects: runs the state machines of the protocol |
//! | [`verify`] | reads every named object, and compares its hash |
//! | [`probe`] | refuses a store that does not honour conditional writes |
//!
//! The `object_store` crate talks to S3 and its likes, Google Cloud Storage and Azure Blob Storage. It reads the credentials from the environment variables of these services, and repeats failed requests.

pub mod history;
pub mod packed;
pub mod probe;
pub mod run;
pub mod store;
pub mod verify;
