//! The questions of `rowhouse new` at a terminal, one per line.
//!
//! **Invariant:** knows a reader and a writer, not the terminal.

use std::io::{BufRead, Write};

use anyhow::bail;
use clap::ValueEnum;

use crate::cli::plain_name;
use content::name::TenantId;

/// A writer for questions and a reader for answers.
pub(super) struct Questions<R, W> {
    answers: R,
    questions: W,
}

impl<R: BufRead, W: Write> Questions<R, W> {
    pub(super) const fn new(answers: R, questions: W) -> Self {
        Self { answers, questions }
    }

    /// Asks for the id of a tenant until the answer is valid.
    pub(super) fn id(&mut self) -> anyhow::Result<TenantId> {
        loop {
            let answer = self.line("Folder of the site, also its path and host (a-z, 0-9, -): ")?;
            match TenantId::new(&answer) {
                Ok(id) => return Ok(id),
                Err(error) => writeln!(self.questions, "{error}")?,
            }
        }
    }

    /// Asks for a name until the answer is valid. An empty answer is the default.
    pub(super) fn name(&mut self, question: &str, default: &str) -> anyhow::Result<String> {
        loop {
            let answer = self.line(&format!("{question} [{default}]: "))?;
            if answer.is_empty() {
                return Ok(default.to_owned());
            }
            match plain_name(&answer) {
                Ok(name) => return Ok(name),
                Err(error) => writeln!(self.questions, "{error}")?,
            }
        }
    }

    /// Asks for one of several values, by number or by name, until the answer is valid. An empty answer is the default.
    pub(super) fn choice<V: ValueEnum + Copy + PartialEq>(
        &mut self,
        question: &str,
        default: V,
    ) -> anyhow::Result<V> {
        let values = V::value_variants();
        writeln!(self.questions, "{question}")?;
        for (number, value) in (1..).zip(values) {
            let Some(shown) = value.to_possible_value() else {
                continue;
            };
            let help = shown
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let name = shown.get_name();
            let mark = if *value == default { '*' } else { ' ' };
            writeln!(self.questions, " {mark}{number}  {name:<8} {help}")?;
        }
        loop {
            let answer = self.line("Number or name [*]: ")?;
            if answer.is_empty() {
                return Ok(default);
            }
            let number = answer.parse::<usize>().ok();
            let by_number = number.and_then(|number| values.get(number.checked_sub(1)?));
            if let Some(value) = by_number
                .copied()
                .or_else(|| V::from_str(&answer, true).ok())
            {
                return Ok(value);
            }
        }
    }

    fn line(&mut self, question: &str) -> anyhow::Result<String> {
        write!(self.questions, "{question}")?;
        self.questions.flush()?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("nothing was created: the input ended");
        }
        Ok(line.trim().to_owned())
    }
}
