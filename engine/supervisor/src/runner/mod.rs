//! The loop, the tenants with everything known of them, and the threads that work for them.

pub(crate) mod background;
pub(crate) mod catalog;
pub(crate) mod driver;
pub(crate) mod memory;
pub(crate) mod operator;
pub(crate) mod registry;
pub(crate) mod reload_loop;
pub(crate) mod settings;
pub(crate) mod surveyor;
pub(crate) mod workers;
