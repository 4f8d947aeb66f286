//! One Rust file as the checks see it. No parser: comments and literals are blanked out, and what
//! is left can be searched for words and counted by braces.

/// A Rust file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the repository root, with `/`.
    pub path: String,
    /// As it was written.
    pub text: String,
    /// The text line for line, comments and the insides of literals blanked out.
    pub code: String,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`, from 1.
    pub line: usize,
    /// Lines from `fn` to the closing brace that hold code.
    pub n_lines: usize,
}

impl Source {
    /// Takes a file's text.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let code = blank(&text);
        Self { path, text, code }
    }

    /// Whether the whole file is no part of what is shipped: under `tests/`, `benches/` or
    /// `examples/`, whose files are programs of their own, a `tests.rs`, or of the crate that only
    /// tests use.
    pub fn is_test(&self) -> bool {
        let mut parts = self.path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        name == "tests.rs"
            || name.ends_with("_tests.rs")
            || parts.any(|dir| matches!(dir, "tests" | "benches" | "examples" | "test-support"))
    }

    /// The code without the items under `#[cfg(test)]`; nothing of a test file.
    pub fn production(&self) -> String {
        if self.is_test() {
            return String::new();
        }
        let mut code = self.code.clone();
        while let Some(start) = code.find("#[cfg(test)]") {
            let end = item_end(&code, start).unwrap_or(code.len());
            let gap = blanked(&code[start..end]);
            code.replace_range(start..end, &gap);
        }
        code
    }
}

/// The functions with a body in blanked-out code, in order.
pub fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for start in words(code, "fn") {
        let name: String = code[start + 2..]
            .trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let Some(end) = item_end(code, start) else { continue };
        if name.is_empty() || !code[start..end].ends_with('}') {
            continue; // a type such as `fn(u64) -> u64`, or a signature in a trait
        }
        let n_lines = code[start..end].lines().filter(|line| !line.trim().is_empty()).count();
        found.push(Function { name, line: line_of(code, start), n_lines });
    }
    found
}

/// Where `word` stands in the code with no letter, digit or underscore at its ends.
pub fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).map(|(start, _)| start).filter(move |start| {
        let before = code[..*start].chars().next_back();
        let after = code[start + word.len()..].chars().next();
        let open_start = !word.starts_with(part_of_word) || !before.is_some_and(part_of_word);
        let open_end = !word.ends_with(part_of_word) || !after.is_some_and(part_of_word);
        open_start && open_end
    })
}

/// The line of a position, from 1.
pub fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

/// Just past the `;` or the closing brace that ends the item beginning at `start`.
pub fn item_end(code: &str, start: usize) -> Option<usize> {
    let mut brackets = 0i32;
    let mut braces = 0i32;
    for (offset, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 {
                    return Some(start + offset + 1);
                }
            }
            ';' if brackets == 0 && braces == 0 => return Some(start + offset + 1),
            _ => {}
        }
    }
    None
}

/// Comments and the insides of literals become spaces; line breaks stay where they are.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = comment(rest)
            .or_else(|| if in_word { None } else { raw_string(rest) })
            .or_else(|| quoted(rest));
        let taken = length.unwrap_or(first.len_utf8());
        match length {
            Some(_) => out.push_str(&blanked(&rest[..taken])),
            None => out.push(first),
        }
        rest = &rest[taken..];
    }
    out
}

fn blanked(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// Length of the comment that `text` begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    Some(text.len())
}

/// Length of the raw string that `text` begins with.
fn raw_string(text: &str) -> Option<usize> {
    let body = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix).filter(|rest| rest.starts_with(['"', '#'])))?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inside = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = inside.find(&close).map_or(inside.len(), |at| at + close.len());
    Some(text.len() - inside.len() + end)
}

/// Length of the string or character literal that `text` begins with; a lifetime is none.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    if quote == '\'' {
        let mut next = text[1..].chars();
        let literal = next.next() == Some('\\') || next.next() == Some('\'');
        if !literal {
            return None;
        }
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_code() {
        let hidden = [
            "// unsafe\n",
            "/* unsafe /* unsafe */ unsafe */",
            "\"unsafe \\\" unsafe\"",
            "r#\"unsafe \" unsafe\"#",
            "br\"unsafe\"",
            "'\\''; \"unsafe\"",
            "'\"'; // unsafe\n",
        ];
        for text in hidden {
            let code = Source::new("a.rs", text).code;
            assert!(!code.contains("unsafe"), "{text:?} became {code:?}");
            assert_eq!(code.lines().count(), text.lines().count());
        }
        for text in ["fn f<'a>(x: &'a str) { unsafe {} }", "r#unsafe", "var\"x\"; unsafe"] {
            assert!(Source::new("a.rs", text).code.contains("unsafe"), "{text:?}");
        }
    }

    #[test]
    fn what_is_under_cfg_test_is_left_out() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(test)]\nuse x;\nfn c() {}\n";
        let source = Source::new("crates/x/src/lib.rs", text);
        let names: Vec<_> = functions(&source.production()).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert!(Source::new("crates/x/tests/it/main.rs", text).production().is_empty());
    }

    #[test]
    fn functions_are_found_with_their_lines() {
        let text = "trait T { fn sig(&self) -> [u8; 4]; }\n\
                    // a comment\n\
                    fn long(f: fn(u8) -> u8) -> u8\n{\n    // why\n\n    f(1)\n}\n";
        let found = functions(&Source::new("a.rs", text).code);
        assert_eq!(found, [Function { name: "long".into(), line: 3, n_lines: 4 }]);
    }

    #[test]
    fn a_word_ends_where_it_ends() {
        assert_eq!(words("unsafe_code unsafe", "unsafe").count(), 1);
        assert_eq!(words("eprintln!() println!()", "println!").count(), 1);
        assert_eq!(words("std::env::var(my_env::x)", "env::").count(), 1);
    }
}
