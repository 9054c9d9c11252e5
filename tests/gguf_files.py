"""Headers of GGUF files for tests: keys with the types of GGUF, and no weights."""

import struct

CODES = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?"), "str": (8, ""), "u64": (10, "<Q")}


def encode_text(value):
    """A text with its length before it."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def encode_value(kind, value):
    """A value without its type."""
    return encode_text(value) if kind == "str" else struct.pack(CODES[kind][1], value)


def encode_key(name, kind, value):
    """One key: its name, its type and its value; `u32[]` is a list."""
    inner = kind.removesuffix("[]")
    if inner == kind:
        return encode_text(name) + struct.pack("<I", CODES[kind][0]) + encode_value(kind, value)
    head = struct.pack("<IIQ", 9, CODES[inner][0], len(value))
    return encode_text(name) + head + b"".join(encode_value(inner, each) for each in value)


def guess_type(value):
    """The type by which converters write a value."""
    first = value[0] if isinstance(value, list) else value
    kind = {bool: "bool", int: "u32", float: "f32", str: "str"}[type(first)]
    return f"{kind}[]" if isinstance(value, list) else kind


def write_gguf(path, architecture, keys):
    """Write a file with these keys of the architecture, and one small tensor."""
    named = {"general.architecture": architecture} | {f"{architecture}.{key}": value for key, value in keys.items()}
    parts = [encode_key(name, guess_type(value), value) for name, value in named.items()]
    tensor = encode_text("token_embd.weight") + struct.pack("<IQQIQ", 2, 4, 4, 1, 0)
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, len(parts)) + b"".join(parts) + tensor
    path.write_bytes(data + bytes(-len(data) % 32) + bytes(32))
    return path
