//! Messages in the formats of the receivers.
//!
//! **Invariant:** pure; the same alerts give the same message.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::plan::AlertLine;
use crate::admin::conditions::Severity;

/// The limit on the text for ntfy, which turns messages of more than 4,096 bytes into attachments.
const MAX_NTFY_BYTES: usize = 4_000;
/// The limit on the text of one alert, in characters. The message of an error may quote a file.
const MAX_ALERT_CHARACTERS: usize = 400;

/// The format of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertFormat {
    /// An object with all alerts, and with their text.
    Json,
    /// The payload of Slack's incoming webhooks.
    Slack,
    /// The payload of ntfy's *Publish as JSON*.
    Ntfy,
    /// The payload of `/api/v2/alerts` of Alertmanager.
    Alertmanager,
}

impl AlertFormat {
    /// Returns the interval at which the receiver must hear of an alert again. Alertmanager ends alerts of which it has not heard for five minutes.
    pub(super) const fn repeat(self) -> Option<Duration> {
        match self {
            Self::Alertmanager => Some(Duration::from_secs(60)),
            Self::Json | Self::Slack | Self::Ntfy => None,
        }
    }

    /// Returns the body of a message. `server`: the host of the sites; `topic`: the topic of ntfy.
    pub(super) fn body(self, lines: &[AlertLine], server: &str, topic: &str) -> Value {
        let title = title(lines, server);
        match self {
            Self::Json => json!({
                "title": title,
                "text": text(lines),
                "status": status(lines.iter().all(|line| line.ended.is_some())),
                "server": server,
                "alerts": lines.iter().map(json_alert).collect::<Vec<_>>(),
            }),
            Self::Slack => {
                json!({ "text": escaped_for_slack(&format!("{title}\n{}", text(lines))) })
            }
            Self::Ntfy => json!({
                "topic": topic,
                "title": title,
                "message": shortened(text(lines), MAX_NTFY_BYTES),
                "priority": priority(lines),
                "tags": [tag(lines)],
            }),
            Self::Alertmanager => {
                let alerts = lines.iter().map(|line| alertmanager_alert(line, server));
                alerts.collect()
            }
        }
    }
}

const fn status(is_resolved: bool) -> &'static str {
    match is_resolved {
        true => "resolved",
        false => "firing",
    }
}

/// Returns the numbers of problems and of their ends.
fn title(lines: &[AlertLine], server: &str) -> String {
    let resolved = lines.iter().filter(|line| line.ended.is_some()).count();
    let problems = match lines.len() - resolved {
        0 => String::new(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    let comma = if problems.is_empty() || resolved == 0 {
        ""
    } else {
        ", "
    };
    let resolved = match resolved {
        0 => String::new(),
        count => format!("{count} resolved"),
    };
    format!("{server}: {problems}{comma}{resolved}")
}

/// Returns a line for each alert.
fn text(lines: &[AlertLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let begin = match line.ended {
            None => "problem".to_owned(),
            Some(ended) => {
                let lasted = ended.duration_since(line.since).unwrap_or_default();
                format!("resolved after {}", duration_text(lasted))
            }
        };
        let message = shortened_message(&line.message);
        let name = line.key.0.name();
        let newline = if text.is_empty() { "" } else { "\n" };
        // Writing to a `String` does not fail.
        let _ = write!(text, "{newline}{begin}: {message} ({name})");
    }
    text
}

/// Returns a duration, such as `40 s`, `12 min` or `3 h`.
fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn shortened_message(message: &str) -> String {
    let one_line = message
        .chars()
        .map(|one| if one.is_control() { ' ' } else { one });
    let mut short: String = one_line.take(MAX_ALERT_CHARACTERS).collect();
    if message.chars().count() > MAX_ALERT_CHARACTERS {
        short.push('…');
    }
    short
}

fn shortened(mut text: String, max_bytes: usize) -> String {
    if text.len() > max_bytes {
        let mut end = max_bytes - '…'.len_utf8();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Escapes the three control characters of Slack's texts.
fn escaped_for_slack(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns the priority of ntfy: 5 for urgent problems, 4 for problems, 3 (the default) for their ends.
fn priority(lines: &[AlertLine]) -> u8 {
    let present = lines.iter().filter(|line| line.ended.is_none());
    match present.map(|line| line.key.0.severity()).max() {
        Some(Severity::Critical) => 5,
        Some(Severity::Warning) => 4,
        None => 3,
    }
}

/// Returns the tag that ntfy shows as an emoji.
fn tag(lines: &[AlertLine]) -> &'static str {
    match priority(lines) {
        5 => "rotating_light",
        4 => "warning",
        _ => "white_check_mark",
    }
}

fn time(at: SystemTime) -> Option<String> {
    let at = Timestamp::try_from(at).ok()?;
    Some(Timestamp::from_second(at.as_second()).ok()?.to_string())
}

fn json_alert(line: &AlertLine) -> Value {
    let (kind, subject) = &line.key;
    let mut alert = Map::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            alert.insert(name.to_owned(), value.into());
        }
    };
    add("name", Some(kind.name().to_owned()));
    add("status", Some(status(line.ended.is_some()).to_owned()));
    add("severity", Some(kind.severity().name().to_owned()));
    add(
        kind.subject_name(),
        subject.as_deref().map(ToOwned::to_owned),
    );
    add("message", Some(shortened_message(&line.message)));
    add("since", time(line.since));
    add("ended", line.ended.and_then(time));
    alert.into()
}

fn alertmanager_alert(line: &AlertLine, server: &str) -> Value {
    let (kind, subject) = &line.key;
    let mut labels = json!({
        "alertname": kind.name(),
        "severity": kind.severity().name(),
        "job": "rowhouse",
        "instance": server,
    });
    if let Some(subject) = subject {
        labels[kind.subject_name()] = (**subject).into();
    }
    let mut alert = json!({
        "labels": labels,
        "annotations": { "summary": shortened_message(&line.message) },
    });
    for (name, at) in [("startsAt", Some(line.since)), ("endsAt", line.ended)] {
        if let Some(at) = at.and_then(time) {
            alert[name] = at.into();
        }
    }
    alert
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::admin::conditions::ConditionKind;

    fn lines() -> [AlertLine; 2] {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        [
            AlertLine {
                key: (ConditionKind::StateNotWritable, None),
                message: "the state cannot be written: No space left".to_owned(),
                since: at(0),
                ended: None,
            },
            AlertLine {
                key: (ConditionKind::TenantDegraded, Some("corner".into())),
                message: "corner has errors: `<b>` & more".to_owned(),
                since: at(0),
                ended: Some(at(1_300)),
            },
        ]
    }

    fn body(format: AlertFormat) -> Value {
        format.body(&lines(), "studio.example", "ops")
    }

    #[test]
    fn json_has_text_and_alerts() {
        let body = body(AlertFormat::Json);
        assert_eq!(body["title"], "studio.example: 1 problem, 1 resolved");
        assert_eq!(
            body["text"],
            "problem: the state cannot be written: No space left (RowhouseStateNotWritable)\nresolved after 21 min: corner has errors: `<b>` & more (RowhouseTenantDegraded)"
        );
        assert_eq!(body["status"], "firing");
        assert_eq!(
            body["alerts"],
            json!([
                {
                    "name": "RowhouseStateNotWritable", "status": "firing", "severity": "critical",
                    "message": "the state cannot be written: No space left", "since": "2023-11-14T22:13:20Z",
                },
                {
                    "name": "RowhouseTenantDegraded", "status": "resolved", "severity": "warning", "tenant": "corner",
                    "message": "corner has errors: `<b>` & more",
                    "since": "2023-11-14T22:13:20Z", "ended": "2023-11-14T22:35:00Z",
                },
            ])
        );
    }

    #[test]
    fn slack_gets_escaped_text_and_nothing_else() {
        let body = body(AlertFormat::Slack);
        assert_eq!(body.as_object().map(Map::len), Some(1));
        let text = body["text"].as_str().unwrap();
        assert!(text.starts_with("studio.example: 1 problem, 1 resolved\nproblem: "));
        assert!(text.contains("`&lt;b&gt;` &amp; more"), "{text}");
    }

    #[test]
    fn ntfy_gets_topic_priority_and_short_text() {
        let body = body(AlertFormat::Ntfy);
        assert_eq!(
            (&body["topic"], &body["priority"]),
            (&json!("ops"), &json!(5))
        );
        assert_eq!(body["tags"], json!(["rotating_light"]));
        let [mut line, resolved] = lines();
        line.message = "ä".repeat(5_000);
        let many = vec![line; 20];
        let body = AlertFormat::Ntfy.body(&many, "studio.example", "ops");
        assert!(body["message"].as_str().unwrap().len() <= MAX_NTFY_BYTES);
        let body = AlertFormat::Ntfy.body(&[resolved], "studio.example", "ops");
        assert_eq!(
            (&body["priority"], &body["tags"]),
            (&json!(3), &json!(["white_check_mark"]))
        );
    }

    #[test]
    fn alertmanager_gets_labels_and_times() {
        let body = body(AlertFormat::Alertmanager);
        assert_eq!(
            body[1],
            json!({
                "labels": {
                    "alertname": "RowhouseTenantDegraded", "severity": "warning", "job": "rowhouse",
                    "instance": "studio.example", "tenant": "corner",
                },
                "annotations": { "summary": "corner has errors: `<b>` & more" },
                "startsAt": "2023-11-14T22:13:20Z",
                "endsAt": "2023-11-14T22:35:00Z",
            })
        );
        assert_eq!(body[0].get("endsAt"), None);
    }
}
