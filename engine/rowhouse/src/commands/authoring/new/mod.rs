//! `rowhouse new [ID]`: creates the folder of a new tenant, which passes `check`.
//!
//! Without an id, it asks on a terminal for every value that no flag sets.
//!
//! **Invariant:** never changes a folder that exists.

mod ask;

use std::fs;
use std::io::{IsTerminal as _, stderr, stdin};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use rust_embed::RustEmbed;

use self::ask::Questions;
use crate::cli::{Colour, NewArguments, StarterKind, StarterLanguage};
use crate::commands::output::{print, print_message};
use content::name::TenantId;
use content::tenant::MANIFEST;
use content::tenant::manifest::DEFAULT_THEME;

/// The files of new tenants, by kind and language; those in `all` are for every language. The placeholders are `{{id}}`, `{{name}}`, `{{today}}`, `{{facts}}` and `{{drawing}}`.
#[derive(RustEmbed)]
#[folder = "starters"]
struct Starter;

/// The theme of a manual, since `base` has no layout for long documents.
const MANUAL_THEME: &str = "plain";

/// The keys of the manifest with a text in each language.
const LOCAL_TEXTS: [&str; 2] = ["tagline:", "description:"];

/// The values of a new tenant.
#[derive(Debug, PartialEq)]
struct NewTenant {
    id: TenantId,
    name: String,
    kind: StarterKind,
    colour: Colour,
    /// The languages of its pages, the default language first.
    languages: Vec<StarterLanguage>,
    theme: String,
}

/// Creates the folder and prints its files. Fails if the folder exists.
pub(crate) fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let asks = stdin().is_terminal() && stderr().is_terminal();
    let tenant = match asks {
        true => values(
            arguments,
            Some(&mut Questions::new(stdin().lock(), stderr())),
        )?,
        false => values::<std::io::Empty, std::io::Sink>(arguments, None)?,
    };
    let id = &tenant.id;
    let folder = arguments.tenants.join(id.as_str());
    if folder.exists() {
        bail!(
            "`{}` already exists: choose another id, or remove the folder first",
            folder.display()
        );
    }
    for (path, text) in tenant.files() {
        let target = folder.join(path);
        let parent = target.parent().unwrap_or(&folder);
        fs::create_dir_all(parent)
            .with_context(|| format!("cannot create the folder `{}`", parent.display()))?;
        fs::write(&target, text).with_context(|| format!("cannot write `{}`", target.display()))?;
        print(&target.display().to_string());
    }
    print_message(&format!(
        "\nNext:\n  1. See the site: run `rowhouse serve`, and open http://{id}.localhost:8080/ or http://localhost:8080/{id}.\n  \
         2. Write your own text; `rowhouse check {id}` lists the rest.\n  \
         3. For completion in your editor, run `rowhouse schema .rowhouse` beside the folder of tenants.\n  \
         4. Give the site its own icon, `assets/icon.svg`, and its theme's `settings`, such as colours."
    ));
    Ok(ExitCode::SUCCESS)
}

/// Returns the values from the flags, or else from the answers, or else the defaults.
fn values<R: std::io::BufRead, W: std::io::Write>(
    arguments: &NewArguments,
    mut questions: Option<&mut Questions<R, W>>,
) -> anyhow::Result<NewTenant> {
    let id = match (&arguments.id, &mut questions) {
        (Some(id), _) => TenantId::new(id)?,
        (None, Some(questions)) => questions.id()?,
        (None, None) => bail!("name the folder to create, as in `rowhouse new corner`"),
    };
    // With an id there are no questions, even on a terminal.
    let mut questions = questions.filter(|_| arguments.id.is_none());
    if id.is_preview() {
        let folder = |id: &str| arguments.tenants.join(id).display().to_string();
        bail!(
            "`{id}` names a preview, which is a copy of its tenant: run `cp -R {} {}`",
            folder(id.live_id()),
            folder(id.as_str()),
        );
    }
    let default = title_case(id.as_str());
    let name = match (&arguments.name, &mut questions) {
        (Some(name), _) => name.clone(),
        (None, Some(questions)) => questions.name("Name that visitors read", &default)?,
        (None, None) => default,
    };
    let kind = match (arguments.kind, &mut questions) {
        (Some(kind), _) => kind,
        (None, Some(questions)) => questions.choice("Kind of site", StarterKind::App)?,
        (None, None) => StarterKind::App,
    };
    let colour = match (arguments.colour, &mut questions) {
        (Some(colour), _) => colour,
        (None, Some(questions)) => {
            questions.choice("Colour of links and buttons", Colour::Green)?
        }
        (None, None) => Colour::Green,
    };
    let languages = match (arguments.language.as_slice(), &mut questions) {
        ([], Some(questions)) => {
            vec![questions.choice("Language of the pages", StarterLanguage::En)?]
        }
        ([], None) => vec![StarterLanguage::En],
        (languages, _) => languages.to_vec(),
    };
    if let Some(twice) = (1..languages.len()).find(|at| languages[..*at].contains(&languages[*at]))
    {
        bail!(
            "`{}` is there twice: name each language once",
            languages[twice].tag()
        );
    }
    let theme = arguments.theme.clone().unwrap_or_else(|| match kind {
        StarterKind::Manual => MANUAL_THEME.to_owned(),
        _ => DEFAULT_THEME.to_owned(),
    });
    if kind == StarterKind::Manual && theme == DEFAULT_THEME {
        bail!("a manual needs the theme `{MANUAL_THEME}`, or a theme with that parent");
    }
    Ok(NewTenant {
        id,
        name,
        kind,
        colour,
        languages,
        theme,
    })
}

impl NewTenant {
    /// Returns the files with their paths in the tenant's folder.
    fn files(&self) -> Vec<(String, String)> {
        let mut files = self.files_in("all");
        let mut manifests = Vec::new();
        for (index, language) in self.languages.iter().enumerate() {
            for (path, text) in self.files_in(language.tag()) {
                match (path.strip_suffix(".md"), index) {
                    _ if path == MANIFEST => manifests.push(text),
                    (Some(page), 1..) => {
                        files.push((format!("{page}.{}.md", language.tag()), text))
                    }
                    _ => files.push((path, text)),
                }
            }
        }
        files.push((MANIFEST.to_owned(), self.manifest(&manifests)));
        files.sort();
        files
    }

    /// Returns the files in one folder of the starter, with their paths in the tenant's folder.
    fn files_in(&self, folder: &str) -> Vec<(String, String)> {
        let folder = format!("{}/{folder}/", self.kind.name());
        let files = Starter::iter().filter_map(|path| {
            let text = Starter::get(&path)?;
            let inner = path.strip_prefix(&folder)?;
            Some((
                inner.to_owned(),
                self.filled(&String::from_utf8_lossy(&text.data)),
            ))
        });
        files.collect()
    }

    /// Returns the manifest of the default language, with texts by language if there are several.
    fn manifest(&self, by_language: &[String]) -> String {
        let (Some(manifest), true) = (by_language.first(), by_language.len() > 1) else {
            return by_language.concat();
        };
        let mut text = String::new();
        for line in manifest.lines() {
            let Some(key) = LOCAL_TEXTS.iter().find(|key| line.starts_with(**key)) else {
                text += &format!("{line}\n");
                continue;
            };
            text += &format!("{key}\n");
            for (language, manifest) in self.languages.iter().zip(by_language) {
                let value = manifest.lines().find_map(|line| line.strip_prefix(key));
                let value = value.unwrap_or_default();
                text += &format!("  {}:{value}\n", language.tag());
            }
        }
        text
    }

    fn filled(&self, text: &str) -> String {
        // Only the theme `base` has the key `drawing`, and draws a house for each site.
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

    /// Returns the lines of the manifest for the theme, the language and the colours.
    fn facts(&self) -> String {
        let mut facts = String::new();
        if self.theme != DEFAULT_THEME {
            facts += &format!("theme: {}\n", self.theme);
        }
        match self.languages.as_slice() {
            [StarterLanguage::En] => {}
            [language] => facts += &format!("language: {}\n", language.tag()),
            languages => {
                let tags: Vec<&str> = languages.iter().map(|language| language.tag()).collect();
                facts += &format!("languages: [{}]\n", tags.join(", "));
            }
        }
        let [day, night, on_night] = self.colour.values();
        facts += &format!(
            "settings:\n  accent: {{day: \"{day}\", night: \"{night}\"}}\n  on_accent: {{day: \"#ffffff\", night: \"{on_night}\"}}"
        );
        facts
    }
}

/// Returns an id as a name: `corner-shop` becomes `Corner Shop`.
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

    fn answered(flags: &[&str], answers: &str) -> (NewTenant, String) {
        let mut asked = Vec::new();
        let mut questions = Questions::new(answers.as_bytes(), &mut asked);
        let tenant = values(&arguments(flags), Some(&mut questions)).unwrap();
        (tenant, String::from_utf8(asked).unwrap())
    }

    #[test]
    fn id_becomes_a_name() {
        assert_eq!(title_case("corner-shop"), "Corner Shop");
        assert_eq!(title_case("a1"), "A1");
    }

    #[test]
    fn questions_are_asked_for_values_without_a_flag() {
        let (tenant, asked) = answered(&["--colour", "blue"], "Corner\ncorner\n\n9\n3\nde\n");
        assert_eq!(tenant.id.as_str(), "corner");
        assert_eq!(tenant.name, "Corner", "an empty line is the default");
        assert_eq!(
            tenant.kind,
            StarterKind::Blog,
            "by its number, once that is valid"
        );
        assert_eq!(tenant.colour, Colour::Blue);
        assert_eq!(tenant.languages, [StarterLanguage::De], "by its name");
        assert!(
            asked.contains("`Corner` is not a valid tenant id"),
            "{asked}"
        );
        assert!(!asked.contains("colour"), "{asked}");
    }

    #[test]
    fn with_an_id_no_question_is_asked() {
        let (tenant, asked) = answered(&["corner"], "");
        assert_eq!((tenant.kind, asked.as_str()), (StarterKind::App, ""));
    }

    #[test]
    fn starter_in_two_languages_has_each_page_twice() {
        let (tenant, _) = answered(&["corner", "--kind", "blog", "--language", "de,en"], "");
        let files = tenant.files();
        for path in ["pages/blog/first.md", "pages/blog/first.en.md"] {
            assert!(files.iter().any(|(file, _)| file == path), "{path}");
        }
        let (_, manifest) = files.iter().find(|(path, _)| path == MANIFEST).unwrap();
        for line in [
            "languages: [de, en]",
            "tagline:",
            "  de: Eine Zeile",
            "  en: One line",
        ] {
            assert!(
                manifest.contains(&format!("\n{line}")),
                "{line}: {manifest}"
            );
        }
        let twice = values::<std::io::Empty, std::io::Sink>(
            &arguments(&["corner", "--language", "en,en"]),
            None,
        );
        assert!(
            twice
                .unwrap_err()
                .to_string()
                .contains("`en` is there twice")
        );
    }

    #[test]
    fn without_a_terminal_an_id_is_required() {
        let tenant = values::<std::io::Empty, std::io::Sink>(&arguments(&[]), None);
        assert!(
            tenant
                .unwrap_err()
                .to_string()
                .contains("rowhouse new corner")
        );
    }
}
