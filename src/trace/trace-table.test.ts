import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NftBatch } from '../kernel/nft/batch.ts';
import type { NftClient } from '../kernel/nft/client.ts';
import { NftError } from '../kernel/nft/errors.ts';
import { describeOperation } from '../kernel/nft/operation.ts';
import { hostCIDR, type Interest } from './interest.ts';
import { placeOf, TRACE_TABLE, whileTraced } from './trace-table.ts';

const destination = hostCIDR('10.96.0.1') ?? 'node';
const interest: Interest = { family: 'IPv4', protocol: 'TCP', destination, port: 80 };

/** Takes commits; `refuse` may throw as the kernel would. */
function client(refuse: (batch: NftBatch) => void = () => {}) {
  const commits: string[][] = [];
  const nft: Pick<NftClient, 'commit'> = {
    async commit(batch) {
      refuse(batch);
      commits.push(batch.operations.map(describeOperation));
      return { generation: 1, bytes: batch.length };
    },
  };
  return { nft, commits };
}

function isOwned({ operations }: NftBatch): boolean {
  const [first] = operations;
  return first !== undefined && 'isOwned' in first.object && first.object.isOwned === true;
}

test('a trace adds one table, and deletes it also when the work fails', async () => {
  const { nft, commits } = client();
  const failing = whileTraced(nft, [interest], { packets: 1 }, () => Promise.reject(new Error('broken')));
  await assert.rejects(failing, /broken/);
  assert.equal(commits.length, 2);
  assert.ok(commits[0]?.every((operation) => operation.includes(TRACE_TABLE)));
  assert.deepEqual(commits[1], [`delete table inet ${TRACE_TABLE}`]);
});

test('a kernel that knows no owned tables gets a plain one', async () => {
  const owned: boolean[] = [];
  const { nft } = client((batch) => {
    owned.push(isOwned(batch));
    if (isOwned(batch)) throw new NftError('commit', [{ errno: 'EINVAL', text: '' }]);
  });
  assert.equal(await whileTraced(nft, [interest], { packets: 1 }, async () => 'done'), 'done');
  assert.deepEqual(owned.slice(0, 2), [true, false]);
});

test('another refusal of the kernel is not hidden', async () => {
  const { nft } = client(() => {
    throw new NftError('commit', [{ errno: 'EPERM', text: '' }]);
  });
  await assert.rejects(
    whileTraced(nft, [interest], { packets: 1 }, async () => {}),
    /EPERM/,
  );
});

test('packets of the node are chosen at output only, others at both beginnings', async () => {
  const count = async (one: Interest) => {
    const { nft, commits } = client();
    await whileTraced(nft, [one], { packets: 1 }, async () => {});
    return ['prerouting', 'output'].map(
      (hook) => commits[0]?.filter((text) => text === `add rule inet ${TRACE_TABLE} ${hook}-first`).length,
    );
  };
  assert.deepEqual(await count(interest), [1, 1]);
  assert.deepEqual(await count({ ...interest, source: 'node' }), [0, 1]);
});

test('after stopMarking no packet is chosen, and the chains that observe stay', async () => {
  const { nft, commits } = client();
  await whileTraced(nft, [interest], { packets: 1 }, (stopMarking) => stopMarking());
  assert.deepEqual(
    commits[1],
    ['prerouting', 'output'].map((hook) => `flush chain inet ${TRACE_TABLE} ${hook}-first`),
  );
});

test('chains of the trace table tell their hook and place', () => {
  assert.deepEqual(placeOf('forward-last'), { hook: 'forward', place: 'last' });
  assert.equal(placeOf('mark'), undefined);
  assert.equal(placeOf('unseen-ipv4'), undefined);
});
