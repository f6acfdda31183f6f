import { AttributeMap } from '../../netlink/attribute-map.ts';
import { type AttributeReader, NetlinkFormatError } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import { nameOf } from '../../numbers.ts';
import { NFTA_DATA, NFTA_VERDICT, verdictCodes } from '../constants.ts';
import type { Register, Verdict } from '../expr.ts';

/** Nested values and verdicts, and the two numberings of registers. */

/** The kernel numbers 16-byte registers from 1 and 4-byte words from 8. Like nft, uses the former where possible. */
function registerNumber(word: Register): number {
  if (!Number.isInteger(word) || word < 0 || word > 15)
    throw new RangeError(`register ${word} is not in 0..15`);
  return word % 4 === 0 ? 1 + word / 4 : 8 + word;
}

/** The reverse; undefined for the verdict register and for unknown numbers. */
export function registerWord(number: number | undefined): Register | undefined {
  if (number === undefined) return undefined;
  if (number >= 1 && number <= 4) return (number - 1) * 4;
  return number >= 8 && number <= 23 ? number - 8 : undefined;
}

export function writeRegister(writer: MessageWriter, type: number, word: Register | undefined): void {
  if (word !== undefined) writer.u32Be(type, registerNumber(word));
}

export function writeValue(writer: MessageWriter, type: number, value: Uint8Array): void {
  writer.nestedData(type, NFTA_DATA.VALUE, value);
}

export function writeVerdict(writer: MessageWriter, type: number, verdict: Verdict): void {
  const data = writer.beginNested(type);
  const nest = writer.beginNested(NFTA_DATA.VERDICT);
  writer.u32Be(NFTA_VERDICT.CODE, verdictCodes[verdict.kind] >>> 0);
  if (verdict.kind === 'jump' || verdict.kind === 'goto') writer.string(NFTA_VERDICT.CHAIN, verdict.chain);
  writer.endNested(nest);
  writer.endNested(data);
}

/** A copy of the value inside nested data; undefined when there is none. */
export function readValue(data: AttributeReader | undefined): Uint8Array | undefined {
  while (data?.next()) if (data.type === NFTA_DATA.VALUE) return data.bytes();
  return undefined;
}

/** The verdict inside nested data; undefined when there is none or its code is unknown. */
export function readVerdict(data: AttributeReader | undefined): Verdict | undefined {
  while (data?.next()) {
    if (data.type !== NFTA_DATA.VERDICT) continue;
    return readVerdictAttributes(new AttributeMap(data.nested()));
  }
  return undefined;
}

/** Reads a verdict; undefined for an unknown code. Throws NetlinkFormatError for a jump without a chain. */
export function readVerdictAttributes(attributes: AttributeMap): Verdict | undefined {
  const kind = nameOf(verdictCodes, attributes.i32Be(NFTA_VERDICT.CODE));
  if (kind !== 'jump' && kind !== 'goto') return kind && { kind };
  const chain = attributes.string(NFTA_VERDICT.CHAIN);
  if (chain === undefined) throw new NetlinkFormatError(`verdict ${kind} names no chain`);
  return { kind, chain };
}
