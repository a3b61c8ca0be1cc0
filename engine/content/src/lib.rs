//! What is in folders, checked: tenants and themes as values that cannot be wrong, or *all* their errors at once.

pub mod name;
pub mod report;

pub mod source;
pub mod yaml;

pub mod schema;

pub mod tenant;

pub mod address;
pub mod theme;
