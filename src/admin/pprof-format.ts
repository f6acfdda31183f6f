import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { ProtobufWriter } from '../obs/protobuf.ts';

interface ValueType {
  readonly type: string;
  readonly unit: string;
}

/** A profile before encoding: stacks, innermost frame first, with one value per value type. */
interface StackProfile {
  readonly valueTypes: readonly ValueType[];
  readonly period: ValueType & { readonly every: number };
  /** Since the epoch. */
  readonly startNanos: bigint;
  readonly durationNanos: bigint;
  readonly samples: readonly {
    readonly stack: readonly Runtime.CallFrame[];
    readonly values: readonly number[];
  }[];
}

interface TreeNode {
  readonly callFrame: Runtime.CallFrame;
  readonly parent: TreeNode | undefined;
}

/** Converts V8's CPU profile to an uncompressed pprof profile, without idle time, as in Go. */
export function cpuProfileToPprof(profile: Profiler.Profile, startMs: number): Uint8Array<ArrayBuffer> {
  const samples = profile.samples ?? [];
  const deltas = profile.timeDeltas ?? [];
  const totals = new Map<number, { count: number; micros: number }>();
  for (const [i, id] of samples.entries()) {
    const total = totals.get(id) ?? { count: 0, micros: 0 };
    totals.set(id, total);
    total.count++;
    // A sample covers the time until the next one; the first delta is the time before the first sample.
    total.micros += Math.max(0, deltas[i + 1] ?? 0);
  }
  const nodes = indexCpuNodes(profile.nodes);
  const micros = profile.endTime - profile.startTime;
  return encodeProfile({
    valueTypes: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    period: {
      type: 'cpu',
      unit: 'nanoseconds',
      every: Math.round((micros * 1000) / Math.max(1, samples.length)),
    },
    startNanos: BigInt(Math.trunc(startMs)) * 1_000_000n,
    durationNanos: BigInt(Math.max(0, Math.trunc(micros))) * 1000n,
    samples: [...totals].flatMap(([id, { count, micros: spent }]) => {
      const stack = stackOf(nodes.get(id));
      return stack.length === 0 ? [] : [{ stack, values: [count, spent * 1000] }];
    }),
  });
}

/** Converts V8's sampling heap profile to an uncompressed pprof profile. */
export function heapProfileToPprof(
  profile: HeapProfiler.SamplingHeapProfile,
  options: {
    readonly startMs: number;
    readonly durationMs: number;
    readonly interval: number;
    readonly type: string;
  },
): Uint8Array<ArrayBuffer> {
  const samples: { stack: Runtime.CallFrame[]; values: number[] }[] = [];
  const pending: { node: HeapProfiler.SamplingHeapProfileNode; parent: TreeNode | undefined }[] = [
    { node: profile.head, parent: undefined },
  ];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const { node } = next;
    const treeNode = { callFrame: node.callFrame, parent: next.parent };
    const stack = stackOf(treeNode);
    if (node.selfSize > 0 && stack.length > 0) {
      samples.push({ stack, values: [Math.round(node.selfSize)] });
    }
    for (const child of node.children) pending.push({ node: child, parent: treeNode });
  }
  return encodeProfile({
    valueTypes: [{ type: options.type, unit: 'bytes' }],
    period: { type: 'space', unit: 'bytes', every: options.interval },
    startNanos: BigInt(Math.trunc(options.startMs)) * 1_000_000n,
    durationNanos: BigInt(Math.trunc(options.durationMs)) * 1_000_000n,
    samples,
  });
}

function indexCpuNodes(nodes: readonly Profiler.ProfileNode[]): Map<number, TreeNode> {
  const parents = new Map<number, number>();
  for (const node of nodes) for (const child of node.children ?? []) parents.set(child, node.id);
  const index = new Map<number, { callFrame: Runtime.CallFrame; parent: TreeNode | undefined }>();
  for (const node of nodes) index.set(node.id, { callFrame: node.callFrame, parent: undefined });
  for (const [child, parent] of parents) {
    const entry = index.get(child);
    if (entry) entry.parent = index.get(parent);
  }
  return index;
}

/** Returns the frames from the innermost outwards, without V8's root; none for idle time. */
function stackOf(leaf: TreeNode | undefined): Runtime.CallFrame[] {
  if (leaf?.callFrame.functionName === '(idle)') return [];
  const stack: Runtime.CallFrame[] = [];
  for (let node = leaf; node; node = node.parent) {
    if (node.callFrame.functionName !== '(root)') stack.push(node.callFrame);
  }
  return stack;
}

/** Assigns numbers from one to distinct items. */
class Numbering<T> {
  readonly items: T[] = [];
  readonly #numbers = new Map<string, number>();

  of(key: string, item: T): number {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.items.push(item);
    this.#numbers.set(key, number);
    return number;
  }
}

/** The field numbers are from profile.proto in github.com/google/pprof. */
function encodeProfile(profile: StackProfile): Uint8Array<ArrayBuffer> {
  const strings = new Numbering<string>();
  // The string table starts with the empty string at index 0.
  const text = (value: string) => (value === '' ? 0 : strings.of(value, value));
  const frames = new Numbering<Runtime.CallFrame>();
  const frame = (f: Runtime.CallFrame) =>
    frames.of(`${f.scriptId}:${f.lineNumber}:${f.columnNumber}:${f.functionName}`, f);
  const valueType = (value: ValueType) => (message: ProtobufWriter) =>
    message.uint(1, text(value.type)).uint(2, text(value.unit));

  const writer = new ProtobufWriter();
  for (const value of profile.valueTypes) writer.message(1, valueType(value));
  for (const { stack, values } of profile.samples) {
    writer.message(2, (sample) => sample.packed(1, stack.map(frame)).packed(2, values));
  }
  for (const [i, f] of frames.items.entries()) writeFrame(writer, i + 1, f, text);
  writer.uint(9, profile.startNanos).uint(10, profile.durationNanos);
  writer.message(11, valueType(profile.period)).uint(12, profile.period.every);
  writer.uint(14, text(profile.valueTypes.at(-1)?.type ?? ''));
  writer.string(6, '');
  for (const value of strings.items) writer.string(6, value);
  return writer.finish();
}

/** Writes a location and its function. Both get the frame's number, because a V8 frame is a function. */
function writeFrame(
  writer: ProtobufWriter,
  id: number,
  frame: Runtime.CallFrame,
  text: (s: string) => number,
): void {
  const line = Math.max(0, frame.lineNumber + 1);
  const name = text(frame.functionName || '(anonymous)');
  writer.message(4, (location) =>
    location.uint(1, id).message(4, (entry) => entry.uint(1, id).uint(2, line)),
  );
  writer.message(5, (fn) =>
    fn.uint(1, id).uint(2, name).uint(3, name).uint(4, text(frame.url)).uint(5, line),
  );
}
