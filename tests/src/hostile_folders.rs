//! Folders of hostile tenants, or of tenants that look hostile. Each tries to affect other tenants in another way.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A hostile folder.
#[derive(Debug, Clone, Copy)]
pub struct HostileFolder {
    /// The name of the attack, as a host label.
    pub name: &'static str,
    /// A word of the report of `rowhouse check`. `None` if the folder itself is valid.
    pub report_word: Option<&'static str>,
    write: fn(&Path),
}

impl HostileFolder {
    /// Writes the complete folder as if it had been moved in. The folder must not exist yet.
    ///
    /// # Panics
    /// Panics if a file cannot be written.
    pub fn write(&self, folder: &Path) {
        fs::create_dir_all(folder.join("assets")).expect("a folder");
        fs::create_dir_all(folder.join("pages")).expect("a folder");
        file(folder, "tenant.yaml", "name: Hostile\n");
        file(folder, "pages/index.md", &page("Here."));
        (self.write)(folder);
    }
}

/// All hostile folders.
pub const ALL: &[HostileFolder] = &[
    kind("html-asset", None, |folder| {
        for end in [
            "html", "htm", "shtml", "xhtml", "xht", "xml", "xsl", "js", "mjs",
        ] {
            file(
                folder,
                &format!("assets/page.{end}"),
                "<script>alert(1)</script>",
            );
        }
    }),
    kind("svg-script", Some("svg"), |folder| {
        let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><script>alert(1)</script><path d=\"M0 0h1v1z\"/></svg>";
        for name in ["icon.svg", "logo.svg", "icons/check.svg"] {
            file(folder, &format!("assets/{name}"), drawing);
        }
    }),
    kind("takes-the-root", Some("root"), |folder| {
        file(folder, "tenant.yaml", "name: Hostile\nroot: true\n");
    }),
    kind("takes-a-path", Some("aliases"), |folder| {
        file(
            folder,
            "tenant.yaml",
            "name: Hostile\naliases: [/apps/bluedoor, /robots.txt, /sitemap.xml, /.well-known/security.txt, /favicon.ico, /assets]\n",
        );
    }),
    kind("redirects-the-assets", Some("/assets"), |folder| {
        file(
            folder,
            "tenant.yaml",
            "name: Hostile\nredirects: [{from: /assets/base.css, to: /}]\n",
        );
    }),
    kind("many-aliases", Some("aliases"), |folder| {
        let mut text = "name: Hostile\naliases:\n".to_owned();
        (0..10_000).for_each(|number| writeln!(text, "  - /many/{number}").expect("text"));
        file(folder, "tenant.yaml", &text);
    }),
    kind("links-to-itself", Some("assets/link"), |folder| {
        for number in 1..=3 {
            symlink(".", folder.join(format!("assets/link{number}"))).expect("a link");
        }
    }),
    kind("links-out", Some("assets/out"), |folder| {
        symlink("/", folder.join("assets/out")).expect("a link");
        symlink("../../..", folder.join("assets/outer")).expect("a link");
    }),
    kind("deep-folders", Some("deep"), |folder| {
        let deep = "a/".repeat(40);
        fs::create_dir_all(folder.join("assets").join(&deep)).expect("folders");
        file(folder, &format!("assets/{deep}x.txt"), "x");
    }),
    kind("many-folders", Some("folder"), |folder| {
        // More than a tenant may have (4,096).
        for number in 0..5_000 {
            fs::create_dir(folder.join(format!("assets/{number}"))).expect("a folder");
        }
    }),
    kind("pipe", Some("assets/pipe"), |folder| {
        let made = std::process::Command::new("mkfifo")
            .arg(folder.join("assets/pipe"))
            .status();
        assert!(made.expect("mkfifo").success());
    }),
    kind("strange-names", Some("UTF-8"), |folder| {
        let name = std::ffi::OsStr::from_bytes(b"assets/\xff\xfe.txt");
        fs::write(folder.join(name), "x").expect("a file");
        file(folder, "assets/50% off #1?.png", "x");
    }),
    kind("html-lines", Some("raw-html"), |folder| {
        file(folder, "pages/index.md", &page(&"<b>\n\n".repeat(50_000)));
    }),
    kind("broken-links", Some("broken-link"), |folder| {
        let mut text = String::new();
        (0..20_000).for_each(|number| write!(text, "[a](/nowhere/{number})\n\n").expect("text"));
        file(folder, "pages/index.md", &page(&text));
    }),
    kind("deep-markdown", None, |folder| {
        file(
            folder,
            "pages/index.md",
            &page(&format!(
                "{}\n\n{}\n\n{}",
                ">".repeat(60_000),
                "[".repeat(60_000),
                "*a_".repeat(30_000)
            )),
        );
    }),
    kind("deep-yaml", Some("deep"), |folder| {
        file(
            folder,
            "tenant.yaml",
            &format!("name: {}\n", "[".repeat(100_000)),
        );
    }),
    kind("yaml-aliases", Some("tenant.yaml"), |folder| {
        let mut text = "name: Hostile\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        (1..20).for_each(|number| {
            let before = format!("*a{}, ", number - 1).repeat(9);
            writeln!(text, "a{number}: &a{number} [{before}]").expect("text");
        });
        file(folder, "tenant.yaml", &text);
    }),
    kind("many-keys", Some("unknown-key"), |folder| {
        let mut text = "---\ntitle: Home\n".to_owned();
        (0..40_000).for_each(|number| writeln!(text, "key{number}: 1").expect("text"));
        file(folder, "pages/index.md", &format!("{text}---\n"));
    }),
    kind("large-page", Some("too-large"), |folder| {
        file(
            folder,
            "pages/index.md",
            &page(&"Some words that go on. ".repeat(400_000)),
        );
    }),
    kind("many-pages", None, |folder| {
        for number in 0..1_500 {
            file(folder, &format!("pages/page-{number}.md"), &page("Words."));
        }
    }),
    kind("nested-groups", Some("icon.svg"), |folder| {
        let drawing = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\">{}<path d=\"M0 0h9v9z\"/>{}</svg>",
            "<g opacity=\".9\"><path d=\"M0 0h9v9z\"/>".repeat(180),
            "</g>".repeat(180)
        );
        file(folder, "assets/icon.svg", &drawing);
    }),
    kind("long-path", Some("icon.svg"), |folder| {
        let drawing = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 9 9\"><path stroke=\"red\" stroke-dasharray=\".0001\" d=\"M0 0{}\"/></svg>",
            "h9v9h-9z".repeat(100_000)
        );
        file(folder, "assets/icon.svg", &drawing);
    }),
    kind("no-picture", Some("pixels"), |folder| {
        let mut header = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        header.extend([0, 1, 0, 0, 0, 1, 0, 0, 8, 6, 0, 0, 0]);
        fs::write(folder.join("assets/share.png"), header).expect("a file");
        file(folder, "tenant.yaml", "name: Hostile\nimage: share.png\n");
    }),
    kind("large-files", None, |folder| {
        for number in 0..6 {
            file(
                folder,
                &format!("assets/words-{number}.txt"),
                &"all work and no play makes a dull site\n".repeat(100_000),
            );
        }
    }),
    kind("script-links", Some("bad-value"), |folder| {
        file(
            folder,
            "pages/index.md",
            &page(
                "[a](javascript://%0aalert(1)) [b](vbscript://x) [c](data://x) [d](javascript:/x)",
            ),
        );
    }),
    kind("redirect-rules", Some("bad-value"), |folder| {
        file(
            folder,
            "tenant.yaml",
            "name: Hostile\nredirects:\n  - from: /a\n    to: \"https://evil.example/x 200! # \"\n  - from: /b\n    to: \"https://evil.example/\\n/* https://evil.example/ 301\"\n",
        );
    }),
];

const fn kind(
    name: &'static str,
    report_word: Option<&'static str>,
    write: fn(&Path),
) -> HostileFolder {
    HostileFolder {
        name,
        report_word,
        write,
    }
}

fn page(body: &str) -> String {
    format!("---\ntitle: Home\n---\n{body}\n")
}

fn file(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}
