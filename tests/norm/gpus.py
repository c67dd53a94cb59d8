"""GPUs with another number of multiprocessors."""

from labkit import cuda


def give_sms(monkeypatch, sms: int) -> None:
    """Lets the GPU in use have so many multiprocessors."""
    gpu = cuda.get_current_device()
    monkeypatch.setattr(gpu, "MULTIPROCESSOR_COUNT", sms)
    monkeypatch.setattr(cuda, "get_current_device", lambda: gpu)
