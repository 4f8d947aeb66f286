//! Manual pages and completions: made by the program from its own flags.

use crate::workdir::Workdir;

const COMMANDS: [&str; 8] =
    ["run", "measure", "predict", "validate", "compare", "report", "clean", "man"];

#[test]
fn every_command_has_a_page_with_its_flags() {
    let work = Workdir::new();
    std::fs::create_dir(work.path("man")).unwrap();
    work.stdout(&["man", "--out", "man"]);
    let tool = std::fs::read_to_string(work.path("man/ioscape.1")).unwrap();
    assert!(tool.contains(".TH ioscape 1") && tool.contains("Exit codes"), "{tool}");
    for command in COMMANDS {
        let page = std::fs::read_to_string(work.path(&format!("man/ioscape-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH ioscape-{command} 1")), "{page}");
        assert!(tool.contains(&format!("ioscape\\-{command}(1)")), "{command}: {tool}");
        let one = work.stdout(&["man", command]);
        assert_eq!(one.trim_end(), page.trim_end());
    }
    let run = std::fs::read_to_string(work.path("man/ioscape-run.1")).unwrap();
    for flag in ["budget", "memory\\-limit", "resume", "dry\\-run"] {
        assert!(run.contains(&format!("\\-\\-{flag}")), "{flag}: {run}");
    }
}

#[test]
fn an_unknown_page_or_place_is_refused() {
    let work = Workdir::new();
    assert!(work.refusal(&["man", "fly"]).contains("no command is called fly"));
    assert!(work.refusal(&["man", "--out", "nowhere"]).contains("no such directory"));
}

#[test]
fn completions_know_commands_and_flags() {
    let work = Workdir::new();
    for shell in ["bash", "zsh", "fish"] {
        let text = work.stdout(&["completions", shell]);
        for word in COMMANDS.into_iter().chain(["memory-limit", "dry-run"]) {
            assert!(text.contains(word), "{shell}: {word}");
        }
    }
    // Bash itself is asked to take them in and to complete a word; it is on nearly every machine.
    let file = work.path("ioscape.bash");
    std::fs::write(&file, work.stdout(&["completions", "bash"])).unwrap();
    let script = format!(
        "source '{}'; COMP_WORDS=(ioscape val); COMP_CWORD=1; _ioscape ioscape val ioscape; \
         echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    match std::process::Command::new("bash").args(["-c", &script]).output() {
        Ok(output) => {
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "validate", "{output:?}");
        }
        Err(error) => ioscape_test_support::skipped(format_args!("completing in bash: {error}")),
    }
}
