//! `rowhouse new [ID]`: a tenant to begin with, which passes `check`.
//!
//! On a terminal it asks for what no flag says.

mod ask;

use std::fs;
use std::io::{IsTerminal as _, stderr, stdin};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rust_embed::RustEmbed;

use self::ask::Questions;
use crate::cli::{Colour, NewArguments, StarterKind, StarterLanguage};
use crate::commands::output::{print, say};
use content::name::TenantId;
use content::tenant::manifest::DEFAULT_THEME;

/// The files of new tenants: for each kind those of a language, and those of `all`. `{{id}}`, `{{name}}`, `{{today}}`, `{{facts}}` and `{{drawing}}` are filled in.
#[derive(RustEmbed)]
#[folder = "starters"]
struct Starter;

/// The theme of a manual: `base` has no place for long documents.
const MANUAL_THEME: &str = "plain";

/// What somebody wants.
#[derive(Debug, PartialEq)]
struct Wish {
    id: TenantId,
    name: String,
    kind: StarterKind,
    colour: Colour,
    language: StarterLanguage,
    theme: String,
}

/// Makes the folder. What is there already is never touched.
pub(crate) fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let asks = stdin().is_terminal() && stderr().is_terminal();
    let wish = match asks {
        true => wish(
            arguments,
            Some(&mut Questions::new(stdin().lock(), stderr())),
        )?,
        false => wish::<std::io::Empty, std::io::Sink>(arguments, None)?,
    };
    let id = &wish.id;
    let folder = arguments.tenants.join(id.as_str());
    if folder.exists() {
        bail!(
            "`{}` is there already: choose another name, or remove it first",
            folder.display()
        );
    }
    for (path, text) in wish.files() {
        let target = folder.join(path);
        let parent = target.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot make the folder `{}`", parent.display()))?;
        fs::write(&target, text).with_context(|| format!("cannot write `{}`", target.display()))?;
        print(&target.display().to_string());
    }
    say(&format!(
        "\nNext:\n  1. Look at it: http://{id}.localhost:8080/ and http://localhost:8080/{id}, while `rowhouse serve` runs.\n  \
         2. Write what only you know; `rowhouse check {id}` lists what is left, line by line.\n  \
         3. For an editor that completes and checks the YAML, run `rowhouse schema .rowhouse` beside the tenants' folder.\n  \
         4. Give it an icon of its own, `assets/icon.svg`, and what its theme has under `settings`: a drawing, colours."
    ));
    Ok(ExitCode::SUCCESS)
}

/// What the flags say, then what is answered, then what most people want.
fn wish<R: std::io::BufRead, W: std::io::Write>(
    arguments: &NewArguments,
    mut questions: Option<&mut Questions<R, W>>,
) -> anyhow::Result<Wish> {
    let id = match (&arguments.id, &mut questions) {
        (Some(id), _) => TenantId::new(id)?,
        (None, Some(questions)) => questions.id()?,
        (None, None) => bail!("say which folder to make, as in `rowhouse new corner`"),
    };
    // Who names the folder and nothing else, even at a terminal, wants it made.
    let mut questions = questions.filter(|_| arguments.id.is_none());
    let default = title_case(id.as_str());
    let name = match (&arguments.name, &mut questions) {
        (Some(name), _) => name.clone(),
        (None, Some(questions)) => questions.name("Its name, as visitors read it", &default)?,
        (None, None) => default,
    };
    let kind = match (arguments.kind, &mut questions) {
        (Some(kind), _) => kind,
        (None, Some(questions)) => questions.choice("What is it?", StarterKind::App)?,
        (None, None) => StarterKind::App,
    };
    let colour = match (arguments.colour, &mut questions) {
        (Some(colour), _) => colour,
        (None, Some(questions)) => questions.choice("Its colour?", Colour::Green)?,
        (None, None) => Colour::Green,
    };
    let language = match (arguments.language, &mut questions) {
        (Some(language), _) => language,
        (None, Some(questions)) => questions.choice("Its language?", StarterLanguage::En)?,
        (None, None) => StarterLanguage::En,
    };
    let theme = arguments.theme.clone().unwrap_or_else(|| match kind {
        StarterKind::Manual => MANUAL_THEME.to_owned(),
        _ => DEFAULT_THEME.to_owned(),
    });
    if kind == StarterKind::Manual && theme == DEFAULT_THEME {
        bail!("a manual needs the theme `{MANUAL_THEME}`, or one that has it as its parent");
    }
    Ok(Wish {
        id,
        name,
        kind,
        colour,
        language,
        theme,
    })
}

impl Wish {
    /// The files with their paths in the folder.
    fn files(&self) -> Vec<(String, String)> {
        let kind = self.kind.name();
        let folders = ["all", self.language.tag()].map(|folder| format!("{kind}/{folder}/"));
        let path_of = |path: &str| {
            let inner = folders.iter().find_map(|folder| path.strip_prefix(folder));
            inner.map(ToOwned::to_owned)
        };
        let files = Starter::iter().filter_map(|path| {
            let text = Starter::get(&path)?;
            Some((
                path_of(&path)?,
                self.filled(&String::from_utf8_lossy(&text.data)),
            ))
        });
        files.collect()
    }

    fn filled(&self, text: &str) -> String {
        // In the theme `base` each site has a house.
        let drawing = match self.theme == DEFAULT_THEME {
            true => "    drawing: house\n",
            false => "",
        };
        text.replace("{{drawing}}\n", drawing)
            .replace("{{facts}}", &self.facts())
            .replace("{{id}}", self.id.as_str())
            .replace("{{name}}", &self.name)
            .replace("{{today}}", &jiff::Zoned::now().date().to_string())
    }

    /// Theme, language and colours, where they are not the default.
    fn facts(&self) -> String {
        let mut facts = String::new();
        if self.theme != DEFAULT_THEME {
            facts += &format!("theme: {}\n", self.theme);
        }
        if self.language != StarterLanguage::En {
            facts += &format!("language: {}\n", self.language.tag());
        }
        let [day, night, on_night] = self.colour.values();
        facts += &format!(
            "settings:\n  accent: {{day: \"{day}\", night: \"{night}\"}}\n  on_accent: {{day: \"#ffffff\", night: \"{on_night}\"}}"
        );
        facts
    }
}

/// `corner-shop` as `Corner Shop`.
fn title_case(id: &str) -> String {
    id.split('-')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().chain(letters).collect()
            })
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn arguments(flags: &[&str]) -> NewArguments {
        let cli = Cli::try_parse_from(["rowhouse", "new"].iter().chain(flags)).unwrap();
        match cli.command {
            Some(Command::New(arguments)) => arguments,
            other => panic!("{other:?}"),
        }
    }

    fn answered(flags: &[&str], answers: &str) -> (Wish, String) {
        let mut asked = Vec::new();
        let mut questions = Questions::new(answers.as_bytes(), &mut asked);
        let wish = wish(&arguments(flags), Some(&mut questions)).unwrap();
        (wish, String::from_utf8(asked).unwrap())
    }

    #[test]
    fn an_id_becomes_a_name() {
        assert_eq!(title_case("corner-shop"), "Corner Shop");
        assert_eq!(title_case("a1"), "A1");
    }

    #[test]
    fn it_asks_for_what_no_flag_says() {
        let (wish, asked) = answered(&["--colour", "blue"], "Corner\ncorner\n\n9\n3\nde\n");
        assert_eq!(wish.id.as_str(), "corner");
        assert_eq!(wish.name, "Corner", "an empty line takes what is offered");
        assert_eq!(
            wish.kind,
            StarterKind::Blog,
            "by its number, once that is one"
        );
        assert_eq!(wish.colour, Colour::Blue);
        assert_eq!(wish.language, StarterLanguage::De, "by its name");
        assert!(asked.contains("`Corner` is no host label"), "{asked}");
        assert!(!asked.contains("colour"), "{asked}");
    }

    #[test]
    fn who_names_the_folder_is_asked_nothing() {
        let (wish, asked) = answered(&["corner"], "");
        assert_eq!((wish.kind, asked.as_str()), (StarterKind::App, ""));
    }

    #[test]
    fn without_a_terminal_an_id_is_needed() {
        let wish = wish::<std::io::Empty, std::io::Sink>(&arguments(&[]), None);
        assert!(
            wish.unwrap_err()
                .to_string()
                .contains("rowhouse new corner")
        );
    }
}
