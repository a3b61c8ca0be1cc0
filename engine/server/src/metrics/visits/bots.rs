//! Recognises bots by their user agent.
//!
//! **Invariant:** pure; the time is proportional to the length of the user agent, whatever the text.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// The list of user agents; its first lines name the source and the licence.
const LIST: &str = include_str!("crawler-user-agents.txt");

/// Maximum number of user agents whose result is remembered.
const MAX_REMEMBERED: usize = 1_024;

/// Recognises bots, and remembers the results for the most recent user agents.
#[derive(Debug, Default)]
pub(super) struct BotDetector {
    remembered: HashMap<Box<[u8]>, bool>,
}

impl BotDetector {
    /// Returns whether a user agent is that of a bot. Browsers always send one, so an empty one is a bot's.
    pub(super) fn is_bot(&mut self, agent: &[u8]) -> bool {
        if agent.is_empty() {
            return true;
        }
        if let Some(known) = self.remembered.get(agent) {
            return *known;
        }
        let is_bot = matches_list(agent);
        if self.remembered.len() >= MAX_REMEMBERED {
            self.remembered.clear();
        }
        self.remembered.insert(agent.into(), is_bot);
        is_bot
    }
}

/// Returns the texts of the list. A line feed, which no user agent has, is in place of the marks of beginning and end.
fn texts() -> impl Iterator<Item = String> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (begin, line) = match line.strip_prefix('^') {
            Some(rest) => ("\n", rest),
            None => ("", line),
        };
        let (line, end) = match line.strip_suffix('$') {
            Some(rest) => (rest, "\n"),
            None => (line, ""),
        };
        format!("{begin}{line}{end}")
    })
}

fn matches_list(agent: &[u8]) -> bool {
    static TEXTS: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        // The smallest automaton: 400 KB.
        let kind = Some(AhoCorasickKind::ContiguousNFA);
        AhoCorasick::builder().kind(kind).build(texts()).ok()
    });
    let agent = [b"\n", agent, b"\n"].concat();
    texts.as_ref().is_some_and(|texts| texts.is_match(&agent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bots_are_recognised_and_browsers_are_not() {
        let mut bots = BotDetector::default();
        for agent in [
            "",
            "curl/8.5.0",
            "Wget/1.21",
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
            "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)",
            "python-requests/2.32.3",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/141.0.0.0 Safari/537.36",
        ] {
            // The second answer is remembered.
            assert!(
                bots.is_bot(agent.as_bytes()) && bots.is_bot(agent.as_bytes()),
                "{agent}"
            );
        }
        for agent in [
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36 Edg/141.0.0.0",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Safari/605.1.15",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1",
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36",
            "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0",
            "libcurl is not at the beginning",
        ] {
            assert!(!bots.is_bot(agent.as_bytes()), "{agent}");
        }
    }

    #[test]
    fn every_pattern_of_the_list_is_a_text() {
        let all: Vec<String> = texts().collect();
        assert!(all.len() > 1_400, "{}", all.len());
        for text in all {
            assert!(text.trim().len() > 1, "{text:?}");
            assert!(
                !text.contains(['\\', '[', '*', '|', '?', '^', '$']),
                "{text}"
            );
        }
    }

    #[test]
    fn remembered_user_agents_are_bounded() {
        let mut bots = BotDetector::default();
        for number in 0..3 * MAX_REMEMBERED {
            assert!(!bots.is_bot(number.to_string().as_bytes()));
            assert!(bots.remembered.len() <= MAX_REMEMBERED);
        }
    }
}
