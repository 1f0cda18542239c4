"""Programs by hands that had seen neither rules nor operators: does `check` name their cause?"""
