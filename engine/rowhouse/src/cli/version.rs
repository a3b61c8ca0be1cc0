//! The version of the program.

/// The version, with the commit in parentheses if the build script found one: `0.1.0 (fc1059fca37b)`.
pub const VERSION: &str = env!("ROWHOUSE_VERSION");

#[cfg(test)]
#[path = "../../build.rs"]
#[expect(dead_code, reason = "Cargo calls its `main`")]
mod build_script;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::VERSION;
    use super::build_script::{commit_of, version};

    fn git(folder: &Path, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=A", "-c", "user.email=a@studio.example"];
        let output = Command::new("git")
            .args(identity)
            .args(arguments)
            .current_dir(folder)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("git");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout)
            .expect("UTF-8")
            .trim()
            .to_owned()
    }

    #[test]
    fn version_has_the_commit_in_short() {
        let hash = "fc1059fca37b5d44022979b597215b2d37a00a2d";
        assert_eq!(version("0.1.0", hash), "0.1.0 (fc1059fca37b)");
        assert_eq!(version("0.1.0", "fc1059f"), "0.1.0 (fc1059f)");
        for text in ["", "fc1", "main", "fc1059f)"] {
            assert_eq!(version("0.1.0", text), "0.1.0", "{text}");
        }
        assert!(VERSION.starts_with(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn commit_of_the_repository_is_found_and_its_files_change_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        assert!(commit_of(root).is_none(), "no repository");
        git(root, &["init", "--quiet"]);
        assert!(commit_of(root).is_none(), "no commit");
        git(
            root,
            &["commit", "--quiet", "--allow-empty", "--message", "a"],
        );
        let first = commit_of(root).expect("a commit");
        assert_eq!(first.hash, git(root, &["rev-parse", "HEAD"]));
        let contents = || -> Vec<Vec<u8>> {
            let files = first.files.iter();
            files.map(|file| fs::read(file).expect("a file")).collect()
        };
        let before = contents();
        git(
            root,
            &["commit", "--quiet", "--allow-empty", "--message", "b"],
        );
        assert_ne!(commit_of(root).expect("a commit").hash, first.hash);
        assert_ne!(contents(), before);
    }

    #[test]
    fn folder_within_another_repository_has_no_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        git(folder.path(), &["init", "--quiet"]);
        git(
            folder.path(),
            &["commit", "--quiet", "--allow-empty", "--message", "a"],
        );
        let inner = folder.path().join("rowhouse");
        fs::create_dir(&inner).expect("a folder");
        assert!(commit_of(&inner).is_none());
    }
}
