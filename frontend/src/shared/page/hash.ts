// The host's URL fragment, `#PLUGIN&p.PLUGIN.KEY=VALUE&…`, read and written as text.

/** The value of a key, or undefined where the fragment does not have it or its escapes are broken. */
export function valueIn(hash: string, key: string): string | undefined {
  for (const part of parts(hash)) {
    const equals = part.indexOf("=");
    if (equals > 0 && part.slice(0, equals) === key) return decoded(part.slice(equals + 1));
  }
  return undefined;
}

/** The fragment with this key set; every other part stays as it is. */
export function withValue(hash: string, key: string, value: string): string {
  const kept = parts(hash).filter((part) => !part.startsWith(`${key}=`));
  return `#${[...kept, `${key}=${encodeURIComponent(value)}`].join("&")}`;
}

function parts(hash: string): readonly string[] {
  return hash.replace(/^#/, "").split("&").filter(Boolean);
}

/** Undefined where its escapes are broken. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}
