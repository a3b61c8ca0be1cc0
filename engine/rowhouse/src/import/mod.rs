//! Reads the redirects of other servers and static hosts as lines of a manifest.
//!
//! | module | reads |
//! |---|---|
//! | [`netlify`] | `_redirects` of Netlify and Cloudflare Pages |
//! | [`apache`] | `Redirect` and `RedirectMatch` of `.htaccess` |
//! | [`nginx`] | `rewrite` and `return` |
//! | [`imported`] | the result, and the checks that all files share |
//! | [`pattern`] | regular expressions that only name a path |
//!
//! **Invariant:** never guesses. A line whose requests or target a manifest cannot express is returned with the reason.

mod apache;
pub mod imported;
mod netlify;
mod nginx;
mod pattern;

use self::imported::{ImportedRedirects, Importer};

/// Reads the redirects of a file. The file's own words say which server it is for.
#[must_use]
pub fn read(text: &str) -> ImportedRedirects {
    let first_words = || {
        let lines = text.lines().map(str::trim_start);
        lines.filter_map(|line| line.split_whitespace().next())
    };
    let mut imported = Importer::default();
    if first_words().any(apache::is_directive) {
        apache::read(text, &mut imported);
    } else if first_words().any(nginx::is_directive) {
        nginx::read(text, &mut imported);
    } else {
        netlify::read(text, &mut imported);
    }
    imported.imported
}

#[cfg(test)]
mod tests {
    use content::formats::old_path::parse_old_path;

    use super::*;

    /// Returns the lines for a manifest, and the problems as `LINE:COLUMN: MESSAGE`.
    fn imported(text: &str) -> (Vec<String>, Vec<String>) {
        let ImportedRedirects {
            redirects,
            problems,
        } = read(text);
        let lines = redirects.iter().map(ToString::to_string);
        let problems = problems
            .iter()
            .map(|problem| format!("{}:{}: {}", problem.line, problem.column, problem.message));
        (lines.collect(), problems.collect())
    }

    #[test]
    fn netlify_lines_become_manifest_lines() {
        let (lines, problems) = imported(
            "# old site\n\
             /old /new\n\
             /blog/*   /news/:splat  302  # moved\n\
             / p=12 /first 301!\n\
             /gone / 410\n\
             /away https://a.example/x 308\n\
             \n\
             /app/* /index.html 200\n\
             /shop id=:id /item/:id 301\n\
             /:year/x /x\n\
             /de / 302 Language=de\n\
             https://old.example/* https://new.example/:splat 301!\n\
             /a/*/b /c\n\
             /old /other\n\
             /lonely\n",
        );
        assert_eq!(
            lines,
            [
                "  - {from: /old, to: /new, status: 301}",
                "  - {from: \"/blog/*\", to: \"/news/:splat\", status: 302}",
                "  - {from: /, query: {\"p\": \"12\"}, to: /first, status: 301}",
                "  - {from: /gone, status: 410}",
                "  - {from: /away, to: \"https://a.example/x\"}",
            ]
        );
        let expected = [
            "8:1: status 200 shows another page",
            "9:1: `id=:id` captures a parameter",
            "10:1: `/:year/x` has a placeholder",
            "11:1: `Language=de` is a condition",
            "12:1: `https://old.example/*` is a path of another host",
            "13:1: `/a/*/b` has a `*`",
            "14:1: `/old` is redirected by an earlier line",
            "15:1: the line has no target",
        ];
        assert_starts(&problems, &expected);
    }

    #[test]
    fn apache_lines_become_manifest_lines() {
        let (lines, problems) = imported(
            "RewriteEngine On\n\
             Redirect 301 /old.html /new\n\
             Redirect /temporary.html https://a.example/x\n\
             redirect permanent \"/a b.html\" /c\n\
             Redirect gone /removed.php\n\
             RedirectPermanent /blog/ /news/\n\
             RedirectMatch 301 ^/posts/(.*)$ /blog/$1\n\
             RedirectMatch 302 ^/x\\.php$ /x\n\
             Redirect 301 /folder /new-folder\n\
             RedirectMatch 301 (.*)\\.php$ $1\n\
             RedirectMatch 301 ^/(\\d+)/x$ /x\n\
             RewriteRule ^y$ /z [R=301,L]\n",
        );
        assert_eq!(
            lines,
            [
                "  - {from: /old.html, to: /new, status: 301}",
                "  - {from: /temporary.html, to: \"https://a.example/x\", status: 302}",
                "  - {from: \"/a b.html\", to: /c, status: 301}",
                "  - {from: /removed.php, status: 410}",
                "  - {from: \"/blog/*\", to: \"/news/:splat\", status: 301}",
                "  - {from: \"/posts/*\", to: \"/blog/:splat\", status: 301}",
                "  - {from: /x.php, to: /x, status: 302}",
                "  - {from: /folder, to: /new-folder, status: 301}",
            ]
        );
        let expected = [
            "9:1: Apache also redirects the paths below `/folder`",
            "10:1: `(.*)\\.php$` is not",
            "11:1: `^/(\\d+)/x$` is not",
            "12:1: `RewriteRule` can do",
        ];
        assert_starts(&problems, &expected);
    }

    #[test]
    fn nginx_lines_become_manifest_lines() {
        let (lines, problems) = imported(
            "server {\n\
             \x20 rewrite ^/old/?$ /new permanent;\n\
             \x20 rewrite ^/blog/(.*)$ /news/$1 redirect; # moved\n\
             \x20 location = /one.php { return 301 /one$is_args$args; }\n\
             \x20 location = /two {\n\
             \x20   if ($arg_id = \"7\") { return 302 /seven; }\n\
             \x20   return 308 $scheme://$host/zwei;\n\
             \x20 }\n\
             \x20 location ~ ^/posts/(.*)$ { return 301 https://blog.example/$1; }\n\
             \x20 location = /gone { return 410; }\n\
             \x20 location /pre/ { return 301 /after; }\n\
             \x20 location /docs { return 301 /manual; }\n\
             \x20 return 301 https://new.example$request_uri;\n\
             \x20 rewrite ^/x /y last;\n\
             \x20 rewrite ^/z$ /y? permanent;\n\
             \x20 location ~* \\.php$ { return 301 /; }\n\
             \x20 location = /v { return 301 /$host; }\n\
             }\n",
        );
        assert_eq!(
            lines,
            [
                "  - {from: /old, to: /new, status: 301}",
                "  - {from: \"/blog/*\", to: \"/news/:splat\", status: 302}",
                "  - {from: /one.php, to: /one, status: 301}",
                "  - {from: /two, query: {\"id\": \"7\"}, to: /seven, status: 302}",
                "  - {from: /two, to: /zwei}",
                "  - {from: \"/posts/*\", to: \"https://blog.example/:splat\", status: 301}",
                "  - {from: /gone, status: 410}",
                "  - {from: \"/pre/*\", to: /after, status: 301}",
                "  - {from: \"/docs/*\", to: /manual, status: 301}",
                "  - {from: /z, to: /y, status: 301}",
            ]
        );
        let expected = [
            "12:20: `location /docs` also matches",
            "13:3: `return` outside of `location`",
            "14:3: `rewrite` with `last`",
            "15:3: the `?` at the end",
            "16:24: `\\.php$` is not",
            "17:19: `/$host` has a variable",
        ];
        assert_starts(&problems, &expected);
    }

    fn assert_starts(problems: &[String], expected: &[&str]) {
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, start) in problems.iter().zip(expected) {
            assert!(problem.starts_with(start), "{problem} is not {start}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read(text in "(Redirect|rewrite|return|location|\\^/a\\(\\.\\*\\)\\$|/b|\\PC| |\n|;|\\{|\\}|\"){0,30}") {
            for redirect in read(&text).redirects {
                proptest::prop_assert!(parse_old_path(&redirect.from).is_ok());
                proptest::prop_assert_eq!(redirect.to.is_none(), redirect.status == 410);
            }
        }
    }
}
