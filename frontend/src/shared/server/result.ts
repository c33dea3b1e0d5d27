// The outcome of a request. Failures are values, never exceptions.
import type { Pending } from "../report";

export type Result<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string } // no response, or not a usable one
  | { readonly kind: "aborted" }; // the caller no longer wants it

/** The outcome of a single request, which may have to be repeated (polling.ts). */
export type Attempt<T> = Result<T> | { readonly kind: "pending"; readonly value: Pending }; // the server still computes it
