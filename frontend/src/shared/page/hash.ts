// Reads and writes the fragment of TensorBoard's URL: `#PLUGIN&p.PLUGIN.KEY=VALUE&…`.

/** The value of a key. Undefined if the fragment does not contain it or its escapes are invalid. */
export function valueIn(hash: string, key: string): string | undefined {
  for (const part of parts(hash)) {
    const equals = part.indexOf("=");
    if (equals > 0 && part.slice(0, equals) === key) return decoded(part.slice(equals + 1));
  }
  return undefined;
}

/** The fragment with this key set. All other parts stay as they are. */
export function withValue(hash: string, key: string, value: string): string {
  const others = parts(hash).filter((part) => !part.startsWith(`${key}=`));
  return `#${[...others, `${key}=${encodeURIComponent(value)}`].join("&")}`;
}

function parts(hash: string): readonly string[] {
  return hash.replace(/^#/, "").split("&").filter(Boolean);
}

/** Undefined if the escapes are invalid. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
