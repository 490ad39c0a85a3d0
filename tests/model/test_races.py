from __future__ import annotations

from functools import partial
import sys
from publish.domain.entry import Entry, overlap
from publish.domain.publish import publish_save
from publish.domain.frameworks import FRAMEWORKS
from publish.domain.ports import Namespace, Store
from publish.domain.prune import prune
from publish.domain.root import PosixRoot
from publish.domain.watch import Watch
from tests.model.explorer import Explorer, World, View
from tests.support.fakes import FakeReport, FakeStore
from tests.support.retrying import asking


def is_whole(files, path):
    return path + b"/weights" in files and files.get(path + b"/trainer_state.json", b"").endswith(b"}")


def world(*steps, epoch=1, published=True):
    store = FakeStore()
    for step in steps:
        path = b"exec/a/checkpoint-%d" % step
        store.files[path + b"/weights"] = b"w"
        store.files[path + b"/trainer_state.json"] = b'{"global_step": %d}' % step
        if published: store.areas[Namespace.PUB].add(Entry.of(epoch, step, path).name)
    return World.of(store)


from publish.domain.trainer_state import global_step
class _Whole:
    pass

def half_pruned(*steps):
    w=world(*steps).store()
    name=min(w.areas[Namespace.PUB]); w.areas[Namespace.PUB].discard(name); w.areas[Namespace.PRUNE].add(name)
    return World.of(w)

def run_prune(keep):
    def program(store, report):
        prune(asking(store), report, keep, map)
    return program

def run_publish(epoch, step):
    def program(store, report):
        publish_save(asking(store), report, Entry.of(epoch, step, b"exec/a/checkpoint-%d" % step))
    return program

def run_watch(epoch, scans=1):
    def program(store, report):
        watch = Watch(asking(store), report, PosixRoot(b"/r"), FRAMEWORKS["hf"], b"exec/a", epoch)
        watch.begin()
        for _ in range(scans): watch.scan()
    return program

PRUNES=("prune",)
cache={}
def final(world, created, unannounced):
    key=(world,created, unannounced)
    if key in cache: return cache[key]
    store=world.store()
    prune(asking(store), FakeReport(), 1, map)
    kept={Entry.parse(n) for n in store.areas[Namespace.PUB]}
    r=None
    for c in created:
        e=Entry.parse(c.name)
        if not any(overlap(e.path,k.path) for k in kept) and store.save_exists(e.path):
            r=f"one more prune leaves the save of {e.step} behind, which no entry names"
    for rec in store.areas[Namespace.PRUNE]:
        if rec not in store.areas[Namespace.PUB]: r=f"one more prune leaves the record {Entry.parse(rec)}"
    for k in kept:
        if not is_whole(store.files,k.path) and k not in unannounced: r=f"after one more prune an entry is without its save: {k}"
    cache[key]=r
    return r

def check_from(initial):
    first={Entry.parse(n) for n in initial.entries(Namespace.PUB)}
    def check(view: View):
        files=dict(view.world.files)
        pub=view.world.entries(Namespace.PUB)
        for name,m in view.moments.items():
            if m.failure is not None and name.startswith(("prune",)): return f"{name} failed: {m.failure!r}"
        promised={e for m in view.moments.values() for w,e in m.said if w=="published"}|first
        for e in promised:
            if is_whole(files,e.path) and e.name in pub: continue
            begun=[c.begun for c in view.created if c.name==e.name]
            if not any(a.startswith("prune") and a not in b for a in view.begun for b in begun):
                return f"published, and gone without a prune that began afterwards: epoch {e.epoch} step {e.step}"
        whole=[e for e in map(Entry.parse,pub) if is_whole(files,e.path)]
        if promised and (not whole or max(whole)<max(promised)):
            return f"the newest publication is lost: {max(promised)[1:]}, left: {whole}"
        alive=any(m.call is not None for n,m in view.moments.items() if n.startswith(("pub","watch")))
        un=frozenset(e for e in map(Entry.parse,pub) if e not in promised) if alive else frozenset()
        return final(view.world, view.created, un)
    return check

def explore(w, losses=0, **programs):
    import time
    t=time.time()
    n=Explorer(w, programs, check_from(w), losses=losses).run()
    print(n, "states", round(time.time()-t,1),"s")
if __name__=="__main__":
    for name,(w,l,progs) in {
      "one prune":(world(1,2,3),0,dict(prune=run_prune(1))),
      "two prunes":(world(1,2,3),0,dict(prune1=run_prune(1),prune2=run_prune(2))),
      "publish x prune":(world(1,2),0,dict(prune1=run_prune(1),publish=run_publish(1,1))),
      "publish new epoch x prune":(world(1,2),0,dict(prune1=run_prune(1),publish=run_publish(2,1))),
      "publish new epoch x 2 prunes":(world(1,2),0,dict(prune1=run_prune(1),prune2=run_prune(1),publish=run_publish(2,1))),
      "2 prunes + third": (world(1,2,3),0,dict(prune1=run_prune(1),prune2=run_prune(2),prune3=run_prune(1))),
      "2 watches": (world(1,2),0,dict(watch1=run_watch(1),watch2=run_watch(1),prune1=run_prune(1))),
      "unpublished saves, 2 watches, prune": (world(1,2,published=False),0,dict(watch1=run_watch(1),watch2=run_watch(2),prune1=run_prune(1))),
      "publish x watch x prune, lost": (world(1,2),1,dict(watch1=run_watch(1),publish=run_publish(2,1),prune1=run_prune(1))),
      "half pruned x publish x prune": (half_pruned(1,2),0,dict(prune1=run_prune(1),publish=run_publish(2,1))),
      "half pruned x publish x watch x prune": (half_pruned(1,2),0,dict(prune1=run_prune(1),watch=run_watch(1),publish=run_publish(2,1))),
      "publish keep2": (world(1,2,3),0,dict(prune1=run_prune(2),prune2=run_prune(1),publish=run_publish(2,1))),
      "watch x prune":(world(1,2),0,dict(prune1=run_prune(1),watch=run_watch(1))),
    }.items():
        print("==",name)
        try: explore(w,l,**progs)
        except AssertionError as e: print(e)
