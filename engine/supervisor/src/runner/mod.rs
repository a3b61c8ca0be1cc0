//! Runs the supervisor: the event loop, the data of all tenants, and the threads that work for them.
//!
//! | module | contents |
//! |---|---|
//! | [`registry`] | the supervisor with its parts and settings |
//! | [`driver`] | passes events to the model, and executes its actions |
//! | [`reload_loop`], [`reload_queue`] | the event loop of a server, and the queue that wakes it |
//! | [`catalog`] | the data of tenants, themes and addresses |
//! | [`operator`] | the commands of operators |
//! | [`preview`] | the log lines of previews |
//! | [`removal`] | the data of tenants whose folders were removed |
//! | [`threads`] | the job pool, the thread for images and content encodings, the threads of surveys, and the thread of the watch |
//! | [`memory`] | the memory limit and the requests of visitors |
//!
//! **Invariant:** the decisions to read, build, serve, evict and persist are made in [`crate::model`], and executed here.

pub(crate) mod catalog;
pub(crate) mod driver;
pub(crate) mod memory;
pub(crate) mod operator;
pub(crate) mod preview;
pub(crate) mod registry;
pub(crate) mod reload_loop;
pub(crate) mod reload_queue;
pub(crate) mod removal;
pub(crate) mod settings;
pub(crate) mod threads;
