"""The part of JSON Schema that strict tools and structured outputs take."""

from typing import Final

from tests.fakes.messages_api.wire import Json, listing, mapping, mappings, refuse

UNSUPPORTED: Final = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "maxItems", "uniqueItems", "contains"),
    *("minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentRequired"),
    *("oneOf", "not", "if", "then", "else"),
)
FORMATS: Final = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
MAX_OPTIONAL: Final = 24
MAX_UNIONS: Final = 16


def check_schema(schema: Json, path: str) -> None:
    """Refuse what the grammar compiler does not take, at any depth, and schemas beyond its limits."""
    nodes = _walk(schema)
    for node in nodes:
        _check_node(node, path)
    _check_recursion(schema, schema, (), path)
    check_limits([schema], path)


def check_limits(schemas: list[Json], path: str) -> None:
    """24 optional parameters and 16 parameters of union type, over all schemas of a request."""
    nodes = [node for schema in schemas for node in _walk(schema)]
    optional = sum(
        len((mapping(node.get("properties")) or {}).keys() - set(listing(node.get("required")) or [])) for node in nodes
    )
    unions = sum("anyOf" in node or listing(node.get("type")) is not None for node in nodes)
    for count, limit, what in (
        (optional, MAX_OPTIONAL, "optional parameters"),
        (unions, MAX_UNIONS, "parameters with union types"),
    ):
        if count > limit:
            refuse(
                f"{path}: Schemas contains too many {what} ({count}), which would make grammar compilation "
                f"inefficient. Reduce the number of {what} in your tool schemas (limit: {limit})."
            )


def _check_node(node: Json, path: str) -> None:
    kind = node.get("type")
    if bad := [name for name in UNSUPPORTED if name in node]:
        refuse(f"{path}: For '{kind}' type, properties {', '.join(bad)} are not supported")
    if (kind == "object" or "properties" in node) and node.get("additionalProperties") is not False:
        refuse(f"{path}: For 'object' type, 'additionalProperties' must be explicitly set to false")
    if node.get("minItems", 0) not in (0, 1):
        refuse(f"{path}: For 'array' type, 'minItems' values other than 0 or 1 are not supported")
    if kind == "string" and node.get("format") is not None and node["format"] not in FORMATS:
        refuse(f"{path}: For 'string' type, format '{node['format']}' is not supported")


def _children(node: Json) -> list[Json]:
    found = [part for name in ("anyOf", "allOf") for part in mappings(node.get(name))]
    for name in ("properties", "$defs", "definitions"):
        found += mappings(list((mapping(node.get(name)) or {}).values()))
    items = mapping(node.get("items"))
    return [*found, items] if items is not None else found


def _walk(node: Json) -> list[Json]:
    return [node, *(below for child in _children(node) for below in _walk(child))]


def _check_recursion(node: Json, root: Json, open_references: tuple[str, ...], path: str) -> None:
    if (reference := node.get("$ref")) is not None:
        name = str(reference)
        definitions = mapping(root.get("$defs")) or mapping(root.get("definitions")) or {}
        target = root if name == "#" else mapping(definitions.get(name.rsplit("/", 1)[-1]))
        if name in open_references:
            refuse(f"{path}: Circular reference detected in schema definitions: {name}")
        if target is None:
            refuse(f"{path}: Reference '{name}' cannot be resolved")
        _check_recursion(target, root, (*open_references, name), path)
        return
    for child in _children({key: value for key, value in node.items() if key not in ("$defs", "definitions")}):
        _check_recursion(child, root, open_references, path)
