import assert from 'node:assert/strict';
import type { Fate } from '../../src/backends/inspection.ts';
import { type CIDR, cidrContains, type Family, parseCIDR, toIP } from '../../src/model/ip.ts';

/** A client outside the cluster; the recordings do not contain its address. */
export const outside: Readonly<Record<Family, string>> = { IPv4: '192.0.2.77', IPv6: '2001:db8:77::7' };
const probabilityError = 1e-6;

/** What should happen to a packet. With `forward`, all endpoints are equally likely; other actions ignore the rest. */
export interface ExpectedFate {
  readonly action: Fate['action'];
  readonly endpoints?: readonly string[];
  readonly masquerade?: boolean;
  readonly affinitySeconds?: number;
}

export function assertFate(fate: Fate, expected: ExpectedFate, about: string): void {
  assert.equal(fate.action, expected.action, about);
  if (fate.action !== 'forward') return;
  const { endpoints = [], masquerade, affinitySeconds } = expected;
  assert.deepEqual(
    fate.targets.map(({ endpoint }) => endpoint),
    endpoints,
    about,
  );
  for (const target of fate.targets) {
    assert.ok(Math.abs(target.probability - 1 / endpoints.length) < probabilityError, about);
    assert.equal(target.masquerade, masquerade, about);
  }
  const sum = fate.targets.reduce((total, { probability }) => total + probability, 0);
  assert.ok(Math.abs(sum - 1) < probabilityError, about);
  assert.equal(fate.affinitySeconds, affinitySeconds, about);
}

/** Whether source ranges let that client through. */
export function isAdmitted(ranges: readonly string[], client: string): boolean {
  return (
    ranges.length === 0 ||
    isInAny(
      ranges.flatMap((range) => parseCIDR(range) ?? []),
      client,
    )
  );
}

export function isInAny(cidrs: readonly CIDR[], address: string): boolean {
  return cidrs.some((cidr) => cidrContains(cidr, toIP(address)));
}
