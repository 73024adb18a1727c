//! Avro data without a container, as Hadoop writes its job history: a schema in JSON, then records one after the other.
//!
//! A small decoder of its own, because the history needs nothing of Avro's containers, codecs or schema resolution, and
//! because lengths come from outside: nothing is allocated before it has arrived.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{self, Read};

/// A type of a schema.
enum Type {
    Null,
    Boolean,
    Int,
    Float,
    Double,
    Text,
    Array(Box<Type>),
    Map(Box<Type>),
    Union(Vec<Type>),
    Enum(Vec<String>),
    Fixed(usize),
    Record(String, Vec<(String, Type)>),
    /// A reference to a named type.
    Named(String),
}

/// A schema that reads records.
pub(super) struct Schema {
    root: Type,
    named: BTreeMap<String, Type>,
}

/// Longest text in a record, deepest nesting of a schema or of data, and most items or union branches.
const MAX_TEXT: u64 = 64 << 20;
const MAX_DEPTH: u32 = 64;
const MAX_ITEMS: usize = 1 << 20;

impl Schema {
    pub fn parse(json: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(json).map_err(|_| "a schema that is not JSON".to_string())?;
        let mut named = BTreeMap::new();
        let root = parse(&value, &mut named, 0)?;
        Ok(Self { root, named })
    }

    /// Reads one record as JSON; unions of records become `{"name": record}` as in Avro's JSON. `None` at the end.
    pub fn read(&self, stream: &mut impl Read) -> io::Result<Option<Value>> {
        let mut first = [0u8];
        if stream.read(&mut first)? == 0 {
            return Ok(None);
        }
        let mut stream = first.as_slice().chain(stream);
        self.value(&self.root, &mut stream, 0).map(Some)
    }

    fn value(&self, t: &Type, stream: &mut dyn Read, depth: u32) -> io::Result<Value> {
        if depth > MAX_DEPTH {
            return Err(bad("data nested more than 64 deep"));
        }
        Ok(match t {
            Type::Null => Value::Null,
            Type::Boolean => Value::Bool(byte(stream)? != 0),
            Type::Int => long(stream)?.into(),
            Type::Float => f32::from_le_bytes(fixed(stream)?).into(),
            Type::Double => f64::from_le_bytes(fixed(stream)?).into(),
            Type::Text => Value::String(text(stream)?),
            Type::Fixed(n) => Value::String(String::from_utf8_lossy(&bytes(stream, *n as u64)?).into_owned()),
            Type::Enum(symbols) => {
                let i = usize::try_from(long(stream)?).ok();
                Value::String(i.and_then(|i| symbols.get(i)).ok_or_else(|| bad("a symbol that its enum does not have"))?.clone())
            }
            Type::Union(branches) => {
                let i = usize::try_from(long(stream)?).ok();
                let branch = i.and_then(|i| branches.get(i)).ok_or_else(|| bad("a branch that its union does not have"))?;
                let branch = self.resolve(branch)?;
                let value = self.value(branch, stream, depth + 1)?;
                match branch {
                    Type::Record(name, _) => Value::Object(Map::from_iter([(name.clone(), value)])),
                    _ => value,
                }
            }
            Type::Array(of) => {
                let mut items = Vec::new();
                self.blocks(stream, |stream| {
                    if items.len() >= MAX_ITEMS {
                        return Err(bad("an array of more than a million items"));
                    }
                    items.push(self.value(of, stream, depth + 1)?);
                    Ok(())
                })?;
                Value::Array(items)
            }
            Type::Map(of) => {
                let mut map = Map::new();
                self.blocks(stream, |stream| {
                    if map.len() >= MAX_ITEMS {
                        return Err(bad("a map of more than a million items"));
                    }
                    let key = text(stream)?;
                    map.insert(key, self.value(of, stream, depth + 1)?);
                    Ok(())
                })?;
                Value::Object(map)
            }
            Type::Record(_, fields) => {
                let mut map = Map::new();
                for (name, t) in fields {
                    map.insert(name.clone(), self.value(t, stream, depth + 1)?);
                }
                Value::Object(map)
            }
            Type::Named(_) => self.value(self.resolve(t)?, stream, depth + 1)?,
        })
    }

    fn resolve<'a>(&'a self, t: &'a Type) -> io::Result<&'a Type> {
        match t {
            Type::Named(name) => self.named.get(name).ok_or_else(|| bad("a type that its schema does not define")),
            t => Ok(t),
        }
    }

    /// Items come in blocks; a negative count is followed by the size of the block in bytes.
    fn blocks(&self, stream: &mut dyn Read, mut item: impl FnMut(&mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        let mut empty_items = 0usize;
        loop {
            let count = long(stream)?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                long(stream)?;
            }
            for _ in 0..count.unsigned_abs() {
                empty_items += 1;
                if empty_items > MAX_ITEMS {
                    return Err(bad("more than a million items"));
                }
                item(stream)?;
            }
        }
    }
}

fn parse(value: &Value, named: &mut BTreeMap<String, Type>, depth: u32) -> Result<Type, String> {
    if depth > MAX_DEPTH {
        return Err("a schema nested more than 64 deep".into());
    }
    let short = |name: &str| name.rsplit('.').next().unwrap_or(name).to_string();
    match value {
        Value::String(name) => Ok(match name.as_str() {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "int" | "long" => Type::Int,
            "float" => Type::Float,
            "double" => Type::Double,
            "string" | "bytes" => Type::Text,
            other => Type::Named(short(other)),
        }),
        Value::Array(branches) => Ok(Type::Union(branches.iter().map(|b| parse(b, named, depth + 1)).collect::<Result<_, _>>()?)),
        Value::Object(object) => {
            let kind = object.get("type").ok_or("a type without \"type\"")?;
            let name = object.get("name").and_then(Value::as_str).map(short);
            let of =
                |key: &str, named: &mut _| parse(object.get(key).ok_or("a collection without its type")?, named, depth + 1).map(Box::new);
            let (name, made) = match (kind.as_str(), name) {
                (Some("array"), _) => return Ok(Type::Array(of("items", named)?)),
                (Some("map"), _) => return Ok(Type::Map(of("values", named)?)),
                (Some("enum"), Some(name)) => {
                    let symbols = object.get("symbols").and_then(Value::as_array).ok_or("an enum without symbols")?;
                    (name, Type::Enum(symbols.iter().filter_map(Value::as_str).map(String::from).collect()))
                }
                (Some("fixed"), Some(name)) => {
                    let size = object
                        .get("size")
                        .and_then(Value::as_u64)
                        .filter(|s| *s <= MAX_TEXT)
                        .ok_or("a fixed type without a sensible size")?;
                    (name, Type::Fixed(size as usize))
                }
                (Some("record"), Some(name)) => {
                    let fields = object.get("fields").and_then(Value::as_array).ok_or("a record without fields")?;
                    let field = |f: &Value, named: &mut _| {
                        let name = f.get("name").and_then(Value::as_str).ok_or("a field without a name")?;
                        Ok::<_, String>((name.to_string(), parse(f.get("type").ok_or("a field without a type")?, named, depth + 1)?))
                    };
                    let fields = fields.iter().map(|f| field(f, named)).collect::<Result<_, _>>()?;
                    (name.clone(), Type::Record(name, fields))
                }
                _ => return parse(kind, named, depth + 1),
            };
            named.insert(name.clone(), made);
            Ok(Type::Named(name))
        }
        _ => Err("a type that is neither name, list nor object".into()),
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

fn fixed<const N: usize>(stream: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut out = [0u8; N];
    stream.read_exact(&mut out)?;
    Ok(out)
}

fn byte(stream: &mut dyn Read) -> io::Result<u8> {
    Ok(fixed::<1>(stream)?[0])
}

/// Zig-zag in groups of seven bits, low first.
fn long(stream: &mut dyn Read) -> io::Result<i64> {
    let mut raw = 0u64;
    for shift in (0..64).step_by(7) {
        let b = byte(stream)?;
        raw |= u64::from(b & 0x7f) << shift;
        if b & 0x80 == 0 {
            return Ok((raw >> 1) as i64 ^ -((raw & 1) as i64));
        }
    }
    Err(bad("a number of more than ten bytes"))
}

fn bytes(stream: &mut dyn Read, n: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if n > MAX_TEXT {
        return Err(bad("a text of more than 64 MiB"));
    }
    if stream.take(n).read_to_end(&mut out)? as u64 != n {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(out)
}

fn text(stream: &mut dyn Read) -> io::Result<String> {
    let n = u64::try_from(long(stream)?).map_err(|_| bad("a text of negative length"))?;
    Ok(String::from_utf8_lossy(&bytes(stream, n)?).into_owned())
}
