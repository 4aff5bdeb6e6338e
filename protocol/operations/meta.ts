import { z } from '../validate.ts';
import { GET, type OperationRows } from './operation-row.ts';

const anything = z.unknown().meta({ type: 'object', additionalProperties: true });

/** What the server says about itself. */
export const metaRows = {
  healthz: {
    methods: GET,
    path: '/healthz',
    tag: 'meta',
    summary: 'Whether the server answers: ok',
    auth: 'none',
    effect: { does: 'read' },
    serves: 'front',
    statuses: [],
    answer: 'text',
  },
  openapi: {
    methods: GET,
    path: '/openapi.json',
    tag: 'meta',
    summary: 'This description',
    auth: 'none',
    effect: { does: 'read' },
    serves: 'front',
    statuses: [],
    answer: anything,
  },
} as const satisfies OperationRows;
