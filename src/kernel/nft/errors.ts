import type { Element } from './objects.ts';
import { describeOperation, type Operation } from './operation.ts';

/** One operation that the kernel refused, and why. */
export interface NftFailure {
  /** Errno name, such as `ENOENT`. */
  readonly errno: string;
  /** The kernel's error text; empty when it sent none. */
  readonly text: string;
  /** Undefined when the kernel refused the batch as a whole. */
  readonly operation?: Operation;
  /** The refused element, where the kernel reports it (5.19 and later). */
  readonly element?: Element;
}

/** A request or transaction that nf_tables refused. Nothing of it was applied. */
export class NftError extends Error {
  readonly code = 'ERR_NFT';
  /** Every failure that the kernel reported, in batch order; never empty. */
  readonly failures: readonly NftFailure[];

  constructor(action: string, failures: readonly NftFailure[], options?: ErrorOptions) {
    const shown = failures.slice(0, 3).map(describeFailure).join('; ');
    super(`${action}: ${shown}${more(failures.length)}`, options);
    this.name = 'NftError';
    this.failures = failures;
  }

  /** Errno name of the first failure. */
  get errno(): string {
    return this.failures[0]?.errno ?? 'EIO';
  }
}

/** The object, or one it refers to, does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof NftError && error.errno === 'ENOENT';
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof NftError && error.errno === 'EEXIST';
}

function describeFailure(failure: NftFailure): string {
  const what = failure.operation ? `${describeOperation(failure.operation)}: ` : '';
  return `${what}${failure.errno}${failure.text === '' ? '' : ` (${failure.text})`}${where(failure)}`;
}

function where({ element }: NftFailure): string {
  return element ? ` at key ${Buffer.from(element.key).toString('hex')}` : '';
}

function more(count: number): string {
  return count > 3 ? `; and ${count - 3} more` : '';
}
