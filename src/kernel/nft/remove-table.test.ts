import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import { NftBatch } from './batch.ts';
import { NftError } from './errors.ts';
import type { TableRef } from './objects.ts';
import { removeTable } from './remove-table.ts';

const table: TableRef = { family: 'ip', name: 'kube-proxy' };

test('removing a table succeeds, also when it does not exist', async () => {
  const nft = new FakeNft();
  await nft.commit(new NftBatch().add('table', table));
  await removeTable(nft, table);
  assert.equal(await nft.getTable(), undefined);
  await removeTable(nft, table);
});

test('removing a table succeeds on a kernel without nf_tables; other refusals are errors', async () => {
  const nft = new FakeNft();
  const refusing = (errno: string) => {
    nft.getTable = async () => {
      throw new NftError('get table', [{ errno, text: '' }]);
    };
  };
  for (const errno of ['EINVAL', 'EAFNOSUPPORT']) {
    refusing(errno);
    await removeTable(nft, table);
  }
  refusing('EPERM');
  await assert.rejects(removeTable(nft, table), /EPERM/);
});
