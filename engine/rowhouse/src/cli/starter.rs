//! The arguments of `new`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `new`.
#[derive(Debug, Clone, Args)]
pub struct NewArguments {
    /// The tenant's id, which becomes its folder, its path and its host: a-z, 0-9 and inner hyphens [default: prompted for on a terminal, like all that no flag says]
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// The name that visitors read [default: made of the id]
    #[arg(long, value_name = "TEXT", value_parser = plain_name)]
    pub name: Option<String>,
    /// What it is [default: app]
    #[arg(long, value_name = "KIND")]
    pub kind: Option<StarterKind>,
    /// The colour of links and buttons [default: green]
    #[arg(long, value_name = "COLOUR")]
    pub colour: Option<Colour>,
    /// The language of its pages [default: en]
    #[arg(long, value_name = "TAG")]
    pub language: Option<StarterLanguage>,
    /// The theme [default: `plain` for a manual, else `base`]
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// The folder of tenants: each folder in it is a site
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
}

/// What a new tenant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StarterKind {
    /// One page
    Landing,
    /// A landing page with privacy, terms and support
    App,
    /// A landing page and a journal with a feed
    Blog,
    /// Documents with a search
    Manual,
}

impl StarterKind {
    /// The folder of its files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Landing => "landing",
            Self::App => "app",
            Self::Blog => "blog",
            Self::Manual => "manual",
        }
    }
}

/// The language of a new tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StarterLanguage {
    /// English
    En,
    /// German
    De,
}

impl StarterLanguage {
    /// Its tag (BCP 47).
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
        }
    }
}

/// A colour that can be read on the grounds of both themes, by day and by night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// As a bottle
    Green,
    /// As ink
    Blue,
    /// As a brick
    Red,
    /// As plums
    Violet,
    /// As slate
    Grey,
}

impl Colour {
    /// By day, by night, and what stands on it by night.
    #[must_use]
    pub const fn values(self) -> [&'static str; 3] {
        match self {
            Self::Green => ["#1d5c4f", "#7fd4bd", "#06201a"],
            Self::Blue => ["#1e4fa3", "#93b4ff", "#0d1730"],
            Self::Red => ["#99301c", "#f0907a", "#2b0e07"],
            Self::Violet => ["#6b3a8f", "#cda6ee", "#1f0d2e"],
            Self::Grey => ["#414b57", "#b3bdc9", "#12161b"],
        }
    }
}

/// A name that can stand anywhere in YAML and Markdown as it is.
///
/// # Errors
/// When it holds a sign that means something there.
pub fn plain_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_plain = |sign: char| sign.is_alphanumeric() || " -.&'’+".contains(sign);
    match name.starts_with(char::is_alphanumeric) && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("use letters, digits, blanks and - . & ' + for now: you can write any name into the files".to_owned()),
    }
}
