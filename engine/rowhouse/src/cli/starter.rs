//! The arguments of `new` and `new-theme`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The arguments of `new`.
#[derive(Debug, Clone, Args)]
pub struct NewArguments {
    /// Id of the tenant: its folder, path and host (a-z, 0-9, inner hyphens)
    ///
    /// Without an id, `new` asks on a terminal for the id and for everything else that no flag sets.
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Name that visitors read [default: derived from the id]
    #[arg(long, value_name = "TEXT", value_parser = plain_name)]
    pub name: Option<String>,
    /// Kind of site [default: app]
    #[arg(long, value_name = "KIND")]
    pub kind: Option<StarterKind>,
    /// Colour of links and buttons [default: green]
    #[arg(long, value_name = "COLOUR")]
    pub colour: Option<Colour>,
    /// Languages of the pages, the default language first [default: en]
    ///
    /// With `en,de`, the starter has each page in both languages: `index.md` and `index.de.md`.
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub language: Vec<StarterLanguage>,
    /// Theme [default: `base`, or `plain` for a manual]
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Folder of tenants; each folder in it is a site
    #[arg(
        long,
        env = "ROWHOUSE_TENANTS",
        value_name = "DIR",
        default_value = "tenants"
    )]
    pub tenants: PathBuf,
}

/// The arguments of `new-theme`.
#[derive(Debug, Clone, Args)]
pub struct NewThemeArguments {
    /// Name of the theme and of its folder (a-z, 0-9, hyphens)
    #[arg(value_name = "NAME", value_parser = theme_name)]
    pub name: String,
    /// Built-in theme that provides everything that the new theme lacks
    #[arg(long, value_name = "NAME", default_value = "plain")]
    pub parent: String,
    /// Folder of themes
    #[arg(
        long,
        env = "ROWHOUSE_THEMES",
        value_name = "DIR",
        default_value = "themes"
    )]
    pub themes: PathBuf,
}

/// The kind of a new tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StarterKind {
    /// One page
    Landing,
    /// A landing page with privacy, terms and support
    App,
    /// A landing page and a blog with a feed
    Blog,
    /// Documents with a search
    Manual,
}

impl StarterKind {
    /// Returns the name of the folder with the files of this kind, in `starters/`.
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
    /// Returns the language tag (BCP 47).
    #[must_use]
    pub const fn tag(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
        }
    }
}

/// An accent colour that is legible on the backgrounds of both themes, by day and by night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// Bottle green
    Green,
    /// Ink blue
    Blue,
    /// Brick red
    Red,
    /// Plum
    Violet,
    /// Slate
    Grey,
}

impl Colour {
    /// Returns the CSS colours of the accent by day, of the accent by night, and of text on the accent by night.
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

/// Parses the name of a theme, which is also the name of a folder and of a layer of styles.
///
/// # Errors
/// Returns a message if the name is not a word of small letters, digits and hyphens.
fn theme_name(text: &str) -> Result<String, String> {
    let is_plain =
        |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    match text.starts_with(|letter: char| letter.is_ascii_lowercase()) && text.bytes().all(is_plain)
    {
        true => Ok(text.to_owned()),
        false => Err(
            "use small letters, digits and hyphens, and begin with a letter, as in `bakery`"
                .to_owned(),
        ),
    }
}

/// Parses a name that needs no quoting in YAML and Markdown.
///
/// # Errors
/// Returns a message if the name holds a character with a meaning there.
pub fn plain_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let is_plain = |character: char| character.is_alphanumeric() || " -.&'’+".contains(character);
    match name.starts_with(char::is_alphanumeric) && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("use only letters, digits, spaces and - . & ' + here; `name` in tenant.yaml may be any text".to_owned()),
    }
}
