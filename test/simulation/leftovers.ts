import type { World } from './world.ts';

export async function checkLeftovers(_world: World): Promise<void> {}
