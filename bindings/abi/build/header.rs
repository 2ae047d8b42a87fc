//! What `edgelog.h` declares.

use crate::tokens;

/// One declaration.
#[derive(Debug)]
pub enum Item {
    /// `#define NAME value`
    Constant { name: String, value: Value },
    /// `typedef type name;`
    Alias { name: String, kind: Type },
    /// A structure or a union whose fields are known.
    Fields {
        name: String,
        union: bool,
        fields: Vec<(String, Type)>,
    },
    /// A structure that is known only by its pointer.
    Opaque { name: String },
    /// A function, with the types of its parameters in order.
    Function {
        name: String,
        parameters: Vec<Type>,
        result: Type,
    },
}

/// The value of a constant.
#[derive(Debug)]
pub enum Value {
    Number(i128),
    Text(String),
}

/// A type as C spells it: `const void *`, `char [16]`.
#[derive(Debug, Clone)]
pub struct Type {
    pub base: String,
    /// One entry for each `*`, innermost first: whether what it points to is const.
    pub pointers: Vec<bool>,
    /// The number of elements, as a number or as the name of a constant.
    pub array: Option<String>,
}

/// Reads the whole header.
pub fn parse(text: &str) -> Result<Vec<Item>, String> {
    let tokens = tokens::split(text)?;
    let mut items = Vec::new();
    for (name, value) in &tokens.macros {
        // An initializer is for C only.
        if value.contains('{') {
            continue;
        }
        items.push(Item::Constant {
            name: name.clone(),
            value: value_of(name, value)?,
        });
    }
    let mut words = Words {
        words: &tokens.words,
    };
    while !words.words.is_empty() {
        let start = words.line();
        let item = item(&mut words).map_err(|error| format!("line {start}: {error}"))?;
        items.extend(item);
    }
    Ok(items)
}

fn value_of(name: &str, text: &str) -> Result<Value, String> {
    let mut rest = text.trim();
    if let Some(inner) = rest
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        return Ok(Value::Text(inner.to_owned()));
    }
    while let Some(inner) = rest
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
    {
        rest = inner.trim();
    }
    let negative = rest.starts_with('-');
    let digits = rest
        .trim_start_matches('-')
        .trim_end_matches(['u', 'U', 'l', 'L']);
    let number = match (digits, digits.strip_prefix("0x")) {
        ("UINT32_MAX", _) => Ok(i128::from(u32::MAX)),
        ("UINT64_MAX", _) => Ok(i128::from(u64::MAX)),
        (_, Some(digits)) => i128::from_str_radix(digits, 16),
        _ => digits.parse::<i128>(),
    };
    let number = number.map_err(|_| format!("{name}: {text:?} is not understood"))?;
    Ok(Value::Number(if negative {
        number.saturating_neg()
    } else {
        number
    }))
}

/// The words that are still to be read.
struct Words<'a> {
    words: &'a [(String, usize)],
}

impl<'a> Words<'a> {
    fn line(&self) -> usize {
        self.words.first().map_or(0, |(_, line)| *line)
    }

    fn peek(&self) -> &'a str {
        self.words.first().map_or("", |(word, _)| word)
    }

    fn next(&mut self) -> &'a str {
        let word = self.peek();
        self.words = self.words.get(1..).unwrap_or(&[]);
        word
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        if found {
            self.next();
        }
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        if self.take(word) {
            Ok(())
        } else {
            Err(format!("{word:?} expected, {:?} found", self.peek()))
        }
    }

    fn name(&mut self) -> Result<String, String> {
        let word = self.next();
        if word.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
            Ok(word.to_owned())
        } else {
            Err(format!("a name expected, {word:?} found"))
        }
    }
}

fn item(words: &mut Words) -> Result<Option<Item>, String> {
    if words.take(";") {
        return Ok(None);
    }
    if words.take("static") {
        return body(words).map(|()| None);
    }
    let typedef = words.take("typedef");
    let tag = words.peek();
    if tag == "struct" || tag == "union" {
        // Looked at without being taken: this may still be a function that answers with a
        // structure.
        let mut ahead = Words { words: words.words };
        ahead.next();
        let name = if ahead.peek() == "{" {
            None
        } else {
            Some(ahead.name()?)
        };
        if ahead.take("{") {
            words.words = ahead.words;
            return fields(words, tag == "union", typedef, name).map(Some);
        }
        if typedef {
            words.words = ahead.words;
            let alias = words.name()?;
            words.expect(";")?;
            return if name.as_deref() == Some(alias.as_str()) {
                Ok(Some(Item::Opaque { name: alias }))
            } else {
                Err(format!(
                    "{alias} is another name of {}",
                    name.unwrap_or_default()
                ))
            };
        }
        if ahead.take(";") {
            words.words = ahead.words;
            return Ok(None);
        }
    }
    let (name, kind) = declaration(words)?;
    if typedef {
        words.expect(";")?;
        return Ok(Some(Item::Alias { name, kind }));
    }
    words.expect("(")?;
    let parameters = parameters(words)?;
    words.expect(";")?;
    Ok(Some(Item::Function {
        name,
        parameters,
        result: kind,
    }))
}

/// Skips an inline function, which is for C only.
fn body(words: &mut Words) -> Result<(), String> {
    let mut depth = 0_u32;
    loop {
        match words.next() {
            "{" => depth = depth.saturating_add(1),
            "}" if depth <= 1 => return Ok(()),
            "}" => depth = depth.saturating_sub(1),
            "" => return Err("an inline function without an end".to_owned()),
            _ => {}
        }
    }
}

fn fields(
    words: &mut Words,
    union: bool,
    typedef: bool,
    name: Option<String>,
) -> Result<Item, String> {
    let mut fields = Vec::new();
    while !words.take("}") {
        let (field, kind) = declaration(words)?;
        fields.push((field, kind.clone()));
        while words.take(",") {
            if !kind.pointers.is_empty() || kind.array.is_some() {
                return Err("several pointers or arrays in one declaration".to_owned());
            }
            fields.push((words.name()?, kind.clone()));
        }
        words.expect(";")?;
    }
    let name = if typedef {
        words.name()?
    } else {
        name.ok_or("a structure without a name")?
    };
    words.expect(";")?;
    Ok(Item::Fields {
        name,
        union,
        fields,
    })
}

fn parameters(words: &mut Words) -> Result<Vec<Type>, String> {
    let mut parameters = Vec::new();
    if words.take("void") {
        if words.take(")") {
            return Ok(parameters);
        }
        return Err("a parameter of type void".to_owned());
    }
    while !words.take(")") {
        // `const void *` is no lone void: it comes here because of its const.
        let (_, kind) = declaration(words)?;
        parameters.push(kind);
        if words.peek() != ")" {
            words.expect(",")?;
        }
    }
    Ok(parameters)
}

fn declaration(words: &mut Words) -> Result<(String, Type), String> {
    let mut constant = words.take("const");
    if !words.take("struct") {
        words.take("union");
    }
    let base = words.name()?;
    constant |= words.take("const");
    let mut pointers = Vec::new();
    while words.take("*") {
        pointers.push(constant);
        constant = words.take("const");
    }
    let name = words.name()?;
    let mut array = None;
    if words.take("[") {
        array = Some(words.next().to_owned());
        words.expect("]")?;
    }
    Ok((
        name,
        Type {
            base,
            pointers,
            array,
        },
    ))
}
