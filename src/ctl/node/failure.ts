import type { KubectlEnd } from './kubectl.ts';

/** One line about a kubectl that failed. Names the missing right if that is the reason. */
export function failureText(command: string, { stderr }: KubectlEnd): string {
  const complaint = lastLine(stderr);
  const reason = complaint.replace(/^error: |^Error from server( \(\w+\))?: /i, '');
  const right = missingRight(complaint);
  if (right !== undefined) return `${right} is missing: ${reason}`;
  return `kubectl ${command}: ${reason === '' ? 'ended without an answer' : reason}`;
}

/** `the right to list pods in namespace kube-system`; undefined unless the API server refuses. */
function missingRight(complaint: string): string | undefined {
  const refusal = /\bcannot (\S+) resource "([^"]+)" in API group "[^"]*"(?: in the namespace "([^"]+)")?/;
  const [, verb, resource, namespace] = refusal.exec(complaint) ?? [];
  if (verb === undefined) return undefined;
  return `the right to ${verb} ${resource}${namespace === undefined ? '' : ` in namespace ${namespace}`}`;
}

/** Why a connection through kubectl port-forward broke, by what kubectl wrote to stderr; undefined when it wrote nothing. */
export function breakText(stderr: string, port: number): string | undefined {
  if (/connect: connection refused/.test(stderr)) {
    return `nothing listens at port ${port} of the node's loopback address; --proxy-port sets the port of the metrics server`;
  }
  const complaint = lastLine(stderr);
  return complaint === '' ? undefined : `kubectl port-forward: ${complaint.replace(/^error: /, '')}`;
}

/** kubectl writes the error last. */
function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1)?.trim() ?? '';
}
