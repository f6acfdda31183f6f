import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeNft } from '../../../test/nftables/fake-nft.ts';
import { NftBatch } from '../../kernel/nft/batch.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import { removeTable } from './cleanup.ts';
import { tableOf } from './layout.ts';

test('a table is removed, and none is success', async () => {
  const nft = new FakeNft();
  await nft.commit(new NftBatch().add('table', tableOf('IPv4')));
  await removeTable(nft, 'IPv4');
  assert.equal(await nft.getTable(), undefined);
  await removeTable(nft, 'IPv4');
});

test('a kernel without nf_tables has nothing to remove; any other refusal is told', async () => {
  const nft = new FakeNft();
  const refusing = (errno: string) => {
    nft.getTable = async () => {
      throw new NftError('get table', [{ errno, text: '' }]);
    };
  };
  for (const errno of ['EINVAL', 'EAFNOSUPPORT']) {
    refusing(errno);
    await removeTable(nft, 'IPv4');
  }
  refusing('EPERM');
  await assert.rejects(removeTable(nft, 'IPv4'), /EPERM/);
});
