//! The loop, the tenants with everything known of them, and the threads that work for them.

pub(crate) mod addresses;
pub(crate) mod background;
pub(crate) mod cards;
pub(crate) mod catalog;
pub(crate) mod commands;
pub(crate) mod completion;
pub(crate) mod demand;
pub(crate) mod driver;
pub(crate) mod memory;
pub(crate) mod operator;
pub(crate) mod registry;
pub(crate) mod reload_loop;
pub(crate) mod round;
pub(crate) mod settings;
pub(crate) mod surveyor;
pub(crate) mod tenant;
pub(crate) mod themes;
pub(crate) mod whole;
pub(crate) mod workers;
