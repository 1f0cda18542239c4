"""Which line, file or process an error is to be blamed on."""

from traindx.analysis.errors.call_messages import STRIDED_VIEW, STRUCTURE
from traindx.analysis.errors.checkpoint_messages import UNREADABLE_ARCHIVE, is_load
from traindx.analysis.errors.culprits import class_count
from traindx.analysis.errors.device_messages import INDEX, allowed_indices, causes_by_tokenizer
from traindx.analysis.errors.failing_lines import (
    is_library_check,
    never_calls_backward,
    path_of,
    refusal_strength,
    why_none,
)
from traindx.analysis.errors.graph_blame import why_second_backward
from traindx.analysis.errors.killed_processes import causes_of_kill, went_on
from traindx.analysis.errors.loader_messages import EMPTY_DATASET
from traindx.analysis.errors.memory_blame import memory_causes
from traindx.analysis.errors.memory_sizes import Allocation
from traindx.analysis.errors.messages import KnownError, known_error
from traindx.analysis.errors.process_group_messages import COLLECTIVES, waits_by_rank
from traindx.analysis.errors.root_failure import (
    is_in_worker,
    is_raised_on_purpose,
    raised_from,
    ranks_that_raised,
    root_failure,
)
from traindx.analysis.errors.shape_blame import size_factors
from traindx.analysis.errors.written_calls import strided_view
from traindx.analysis.program import project_of
from traindx.examples import failed, make_run
from traindx.model.findings import Strength
from traindx.model.run import Event, Frame, Run

GB = float(1 << 30)


def known(run: Run, table: object) -> KnownError:
    found = known_error(run, table)
    assert found is not None
    return found


def test_an_end_of_input_is_a_load_where_the_code_loads():
    error = "EOFError: Ran out of input"
    assert is_load(known(failed(error, "ckpt = torch.load(path)"), UNREADABLE_ARCHIVE))
    assert not is_load(known(failed(error), UNREADABLE_ARCHIVE))


def test_a_view_is_found_behind_its_transpose():
    code = "x = a.view(3).transpose(0, 1).view(-1)"
    error = "RuntimeError: view size is not compatible with input tensor's size and stride"
    run = failed(error, code, sources={"t.py": f"{code}\n"})
    found = strided_view(known(run, STRIDED_VIEW))
    assert found is not None and list(found.arguments) == ["-1"]


def test_the_number_of_classes_is_configured_or_written():
    assert class_count(make_run(config={"num_classes": 7}))[0] == 7
    assert class_count(make_run(sources={"a.py": "num_classes = 5\n"}))[0] == 5
    assert class_count(make_run()) == (None, None)


def test_indices_that_a_table_allows():
    error = "IndexError: index 10 is out of bounds for dimension 0 with size 10"
    assert "off by one" in allowed_indices(known(failed(error), INDEX))


def test_a_check_of_a_library_stands_in_its_own_file():
    check = Frame("/x/site-packages/lib/a.py", 9, "__init__", "raise ValueError('no')")
    run = failed("ValueError: no", "make()", frames=(check,))
    assert is_library_check(run, run.failures[0])
    plain = failed("ValueError: no", "make()")
    assert not is_library_check(plain, plain.failures[0])


def test_none_is_a_gradient_where_the_line_says_so():
    error = "AttributeError: 'NoneType' object has no attribute 'data'"
    run = failed(error, "w.grad.data.zero_()")
    failure = KnownError(run, run.failures[0], STRUCTURE[0], {})
    assert "no backward pass" in why_none(failure)["origin"]


def test_a_source_without_backward():
    assert never_calls_backward(make_run(sources={"a.py": "scaler.step(optimizer)\n"}))
    assert not never_calls_backward(make_run(sources={"a.py": "loss.backward()\n"}))
    assert not never_calls_backward(make_run())


def test_a_hidden_state_is_carried_into_the_next_graph():
    text = "for x, y in loader:\n    out, hidden = model(x, hidden)\n    loss = out.mean()\n"
    text = f"import torch\n{text}    loss.backward()\n    optimizer.step()\n"
    run = make_run(sources={"train.py": text})
    assert why_second_backward(project_of(run))[0] == "graph-retained-across-steps"
    assert why_second_backward(project_of(make_run())) == (None, None)


def test_a_kill_for_memory_is_told_by_the_host():
    run = failed("Killed: Killed")
    assert causes_of_kill(run, run.failures[0])["killed-by-host"] is Strength.STRONG
    event = Event("killed", "Out of memory: Killed process 12", "dmesg.log", "line 1", step=4.0)
    told = make_run({"loss/train": [1.0, 0.9]}, events=[event], failures=run.failures)
    assert causes_of_kill(told, told.failures[0])["host-memory-growth"] is Strength.STRONG
    assert not went_on(told, event)


def test_memory_of_other_processes_is_blamed_on_them():
    run = failed("OutOfMemoryError: CUDA out of memory.", "y = model(x)")
    alone = Allocation(tried=2 * GB, capacity=16 * GB)
    assert memory_causes(run, run.failures[0], alone)[0]["activation-memory"] is Strength.STRONG
    whole = Allocation(tried=20 * GB, capacity=16 * GB)
    assert "exceeds the whole GPU" in memory_causes(run, run.failures[0], whole)[1]


def test_ranks_that_raise_the_same_and_those_that_wait():
    error = "KeyError: 'label'"
    failures = [failed(error, "main()", rank=r).failures[0] for r in (0, 1)]
    run = make_run(failures=failures)
    root = root_failure(run)
    assert root is not None and ranks_that_raised(run, root) == {0, 1}
    text = (
        "torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000)"
        " ran for 1800095 milliseconds before timing out."
    )
    assert waits_by_rank(failed(text, rank=3)) == {3: {("5", "ALLREDUCE")}}
    assert known_error(failed(text), COLLECTIVES) is not None


def test_a_message_of_ones_own_is_raised_on_purpose():
    check = Frame("train.py", 9, "main", "raise KeyError('no such column here')")
    run = failed("KeyError: 'no such column here'", frames=(check,))
    assert is_raised_on_purpose(run.failures[0])
    assert not is_raised_on_purpose(failed("KeyError: 'label'").failures[0])


def test_a_worker_is_known_by_its_words_or_its_files():
    run = failed("RuntimeError: Caught X in DataLoader worker process 0.")
    assert is_in_worker(run, run.failures[0])
    plain = failed("RuntimeError: x")
    assert not is_in_worker(plain, plain.failures[0])
    assert known_error(plain, EMPTY_DATASET) is None


def test_a_flattened_image_factors_into_channels():
    assert "channels × height × width" in size_factors(64 * 7 * 7, 64)
    assert size_factors(17, 1) == ""


def test_places_and_causes_of_refused_calls():
    made = Frame("C:\\lib\\a.py", 3, "Net.__init__", "raise ValueError")
    assert path_of(made) == "C:/lib/a.py"
    failure = failed("ValueError: no", frames=(made,)).failures[0]
    assert refusal_strength(failure) is Strength.STRONG
    assert raised_from(failed("KeyError: 'a'", "x = b['a']").failures[0], "KeyError").endswith(
        ":31"
    )
    assert causes_by_tokenizer(make_run(config={"tokenizer": "gpt2"}))
    assert not causes_by_tokenizer(make_run())
