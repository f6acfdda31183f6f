import type { RotatedFile } from './rotated-file.ts';

/** What authenticates a request. */
export interface Credential {
  readonly token?: string;
  /** PEM; overrides a certificate from files. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

/** Where credentials come from. */
export interface Credentials {
  /** The credential to use now. Rejects when there is none; the message never holds a secret. */
  current(): Promise<Credential>;
  /** Call after a 401 for `used`; returns whether `current` may now return another credential. */
  refused(used: Credential): boolean;
}

export function fixedCredentials(credential: Credential): Credentials {
  return { current: () => Promise.resolve(credential), refused: () => false };
}

export function tokenFileCredentials(file: RotatedFile): Credentials {
  return {
    async current() {
      const token = (await file.read()).trim();
      if (token === '') throw new Error(`read empty token from file "${file.path}"`);
      return { token };
    },
    // The file is read for every request; the next one uses a rotated token anyway.
    refused: () => false,
  };
}
