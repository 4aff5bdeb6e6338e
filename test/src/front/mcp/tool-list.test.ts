import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { limits } from '../../../../protocol/limits.ts';
import { ToolLists } from '../../../../src/front/mcp/tool-list.ts';

interface ListAnswer {
  readonly id: unknown;
  readonly result: { readonly resultType?: string; readonly tools: readonly { readonly name: string }[] };
}

const read = (lists: ToolLists, id: string, era: 'modern' | 'legacy', visible: 'all' | 'reading') =>
  JSON.parse(Buffer.concat(lists.answer(id, era, visible)).toString()) as ListAnswer;

describe('the list of tools', () => {
  it('has the id that was asked with, the form of its era and the tools of its caller, however often it is asked', () => {
    const lists = new ToolLists();
    const ids = ['0', '1', '"1"', '-1', '1e3', '"a\\n"', `"${'long'.repeat(100)}"`, '1'];
    for (let round = 0; round < 3; round++)
      for (const id of ids)
        for (const era of ['modern', 'legacy'] as const)
          for (const visible of ['all', 'reading'] as const) {
            const { id: answered, result } = read(lists, id, era, visible);
            assert.deepEqual(answered, JSON.parse(id));
            assert.equal(result.resultType, era === 'modern' ? 'complete' : undefined);
            assert.equal(result.tools.length === 11, visible === 'all');
            assert.equal(
              result.tools.some(({ name }) => name === 'write_documents'),
              visible === 'all',
            );
          }
  });

  it('is kept for a few ids, and right for any number of them', () => {
    const lists = new ToolLists();
    for (let id = 0; id < limits.toolListsKept * 4; id++)
      assert.equal(read(lists, String(id), 'modern', 'all').id, id);
    assert.equal(lists.answer('7', 'modern', 'all')[0], lists.answer('7', 'modern', 'all')[0]);
  });
});
