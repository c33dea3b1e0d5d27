// The outcome of a request. Failures are values, never exceptions.

export type Result<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string } // no response, or not a usable one
  | { readonly kind: "aborted" }; // the caller no longer wants it
